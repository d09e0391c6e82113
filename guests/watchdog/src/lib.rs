//! A service of the lobby: hears of new connections, launches an agent for each, and binds the connection to it.
//! `[gate] watchdog` of the host's configuration names it.
//!
//! It is also where a game leaves a client that it has done with: it binds the connection to the service `watchdog`, and
//! the client gets a new agent.
//!
//! A client that speaks before it is bound to its agent is heard here; what it says is passed on. The host lets no later
//! packet overtake that.
//!
//! Configuration: `agent` (`agent`) is the guest that agents are launched of, `max_agents` (1000) how many there may be,
//! `at_first_packet` (false) whether a client gets its agent only once it has said something, so that those who come and
//! say nothing cost next to nothing, `simpledb` and `chat` (`simpledb`, `chat`) the names of the services that agents use.

use std::collections::{BTreeMap, BTreeSet};

use lobby::{AGENT_ENDS, AgentArguments, Pace};
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
struct Config {
    agent: String,
    max_agents: usize,
    at_first_packet: bool,
    simpledb: String,
    chat: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            agent: "agent".into(),
            max_agents: 1_000,
            at_first_packet: false,
            simpledb: "simpledb".into(),
            chat: "chat".into(),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Watchdog {
    #[serde(skip)]
    config: Config,
    agents: BTreeSet<Handle>,
    #[serde(skip)]
    looks: Pace,
    /// Clients that are still heard here: where they come from, and their agent once they have one.
    here: BTreeMap<ConnectionId, Client>,
}

#[derive(Serialize, Deserialize)]
struct Client {
    address: String,
    agent: Option<Handle>,
}

impl Service for Watchdog {
    type Config = Config;

    fn init(config: Config, _arguments: Vec<u8>) -> Result<Self, Refusal> {
        services::register("watchdog", actor::this())?;
        Ok(Self { config, agents: BTreeSet::new(), looks: Pace::default(), here: BTreeMap::new() })
    }

    fn handle(&mut self, message: Message) -> Result<Vec<u8>, Refusal> {
        match message.subject {
            Subject::Connected(connection) => {
                let address = message.text()?.to_owned();
                self.here.insert(connection, Client { address, agent: None });
                if !self.config.at_first_packet {
                    self.welcome(connection)?;
                }
            }
            Subject::Packet(connection) => self.pass_on(connection, message)?,
            // It is its agent's from here on, or has left.
            Subject::Disconnected(connection) => {
                self.here.remove(&connection);
            }
            Subject::Plain if *message.payload == *AGENT_ENDS => {
                self.agents.remove(&message.source);
            }
            other => refuse!("the watchdog hears of connections and of agents that end, and got {other:?}"),
        }
        Ok(Vec::new())
    }

    fn restored(&mut self, config: Config) {
        self.config = config;
    }
}

impl Watchdog {
    /// Gives a client an agent, or says in a line why there is none, and closes.
    fn welcome(&mut self, connection: ConnectionId) -> Result<Option<Handle>, Refusal> {
        match self.launch(connection) {
            Ok(agent) => Ok(Some(agent)),
            Err(refusal) => {
                warn!("a client was turned away: {refusal}");
                gate::tell(connection, format!("you cannot come in: {refusal}"))?;
                gate::close(connection);
                Ok(None)
            }
        }
    }

    /// What a client says goes to its agent, which it gets now if it has none.
    fn pass_on(&mut self, connection: ConnectionId, packet: Message) -> Result<(), Refusal> {
        let agent = match self.here.get(&connection).and_then(|client| client.agent) {
            Some(agent) => Some(agent),
            None => self.welcome(connection)?,
        };
        match agent {
            Some(agent) => Ok(actor::forward(agent, packet)?),
            None => Ok(()),
        }
    }

    fn launch(&mut self, connection: ConnectionId) -> Result<Handle, Refusal> {
        if self.agents.len() >= self.config.max_agents && self.looks.is_time(clock::now()) {
            self.agents.retain(|agent| is_alive(*agent));
        }
        if self.agents.len() >= self.config.max_agents {
            refuse!("{} are here already, come back later", self.config.max_agents);
        }
        let Some(client) = self.here.get_mut(&connection) else { refuse!("the client has left") };
        let arguments = AgentArguments {
            connection,
            address: client.address.clone(),
            watchdog: actor::this(),
            simpledb: self.config.simpledb.clone(),
            chat: self.config.chat.clone(),
        };
        let agent = services::launch(&self.config.agent, services::encode(&arguments)?)?;
        if let Err(error) = gate::bind(connection, agent) {
            services::kill(agent);
            return Err(error.into());
        }
        client.agent = Some(agent);
        self.agents.insert(agent);
        Ok(agent)
    }
}

/// An agent that failed does not say that it ends. An empty message is nothing to an agent, and an error if there is
/// none.
fn is_alive(agent: Handle) -> bool {
    !matches!(services::send(agent, b""), Err(ServiceError::Gone(_)))
}

wheelhouse_guest::service!(Watchdog);
