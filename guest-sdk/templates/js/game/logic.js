// The rules, which know nothing of the host: this is what the tests test.

export function begin() {
  return { visitors: 0 };
}

// The answer to a packet; nothing where there is none.
export function answer(state, text) {
  if (text !== 'hello') return undefined;
  state.visitors += 1;
  return `you are visitor ${state.visitors}`;
}

// What this guest remembers, as bytes. The version says how to read them: raise it when the form changes, and keep
// reading the older ones.
export function encode(state) {
  return new TextEncoder().encode(JSON.stringify({ version: 1, ...state }));
}

export function decode(bytes) {
  const { version, ...state } = JSON.parse(new TextDecoder().decode(bytes));
  if (version !== 1) throw `there is no way to read version ${version} of the state`;
  return state;
}
