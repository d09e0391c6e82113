//! A service of the lobby: hears of new connections, launches an agent for each, and binds the connection to it.
//! `[gate] watchdog` of the host's configuration names it.
//!
//! It is also where a game leaves a client that it has done with: it binds the connection to the service `watchdog`, and
//! the client gets a new agent.
//!
//! Configuration: `agent` (`agent`) is the guest that agents are launched of, `max_agents` (1000) how many there may be,
//! `simpledb` and `chat` (`simpledb`, `chat`) the names of the services that agents use.

use std::collections::BTreeSet;

use lobby::{AGENT_ENDS, AgentArguments};
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
struct Config {
    agent: String,
    max_agents: usize,
    simpledb: String,
    chat: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { agent: "agent".into(), max_agents: 1_000, simpledb: "simpledb".into(), chat: "chat".into() }
    }
}

#[derive(Serialize, Deserialize)]
struct Watchdog {
    #[serde(skip)]
    config: Config,
    agents: BTreeSet<Handle>,
}

impl Service for Watchdog {
    type Config = Config;

    fn init(config: Config, _arguments: Vec<u8>) -> Result<Self, Refusal> {
        services::register("watchdog", actor::this())?;
        Ok(Self { config, agents: BTreeSet::new() })
    }

    fn handle(&mut self, message: Message) -> Result<Vec<u8>, Refusal> {
        match message.subject {
            Subject::Connected(connection) => self.welcome(connection, message.text()?)?,
            Subject::Plain if *message.payload == *AGENT_ENDS => {
                self.agents.remove(&message.source);
            }
            // A client that was passed on, or that left before; one that spoke before it had an agent.
            Subject::Disconnected(_) | Subject::Packet(_) => {}
            other => refuse!("the watchdog hears of connections and of agents that end, and got {other:?}"),
        }
        Ok(Vec::new())
    }

    fn restored(&mut self, fresh: Self) {
        self.config = fresh.config;
    }
}

impl Watchdog {
    /// Gives a client an agent, or says in a line why there is none, and closes.
    fn welcome(&mut self, connection: ConnectionId, address: &str) -> Result<(), Refusal> {
        if let Err(refusal) = self.launch(connection, address) {
            warn!("{address} was turned away: {refusal}");
            gate::tell(connection, format!("you cannot come in: {refusal}"))?;
            gate::close(connection);
        }
        Ok(())
    }

    fn launch(&mut self, connection: ConnectionId, address: &str) -> Result<(), Refusal> {
        if self.agents.len() >= self.config.max_agents {
            self.agents.retain(|agent| is_alive(*agent));
        }
        if self.agents.len() >= self.config.max_agents {
            refuse!("{} are here already, come back later", self.config.max_agents);
        }
        let arguments = AgentArguments {
            connection,
            address: address.into(),
            watchdog: actor::this(),
            simpledb: self.config.simpledb.clone(),
            chat: self.config.chat.clone(),
        };
        let agent = services::launch(&self.config.agent, services::encode(&arguments)?)?;
        if let Err(error) = gate::bind(connection, agent) {
            services::kill(agent);
            return Err(error.into());
        }
        self.agents.insert(agent);
        Ok(())
    }
}

/// An agent that failed does not say that it ends. An empty message is nothing to an agent, and an error if there is
/// none.
fn is_alive(agent: Handle) -> bool {
    !matches!(services::send(agent, b""), Err(ServiceError::Gone(_)))
}

wheelhouse_guest::service!(Watchdog);
