// What the service does, which knows nothing of the host: this is what the tests test.

export function begin() {
  return { sum: 0 };
}

// The answer to a message. Throwing a text refuses it.
export function answer(state, text) {
  const [word, number] = text.split(' ');
  if (word === 'add') {
    if (!Number.isSafeInteger(Number(number))) throw 'add takes a number';
    state.sum += Number(number);
  }
  return String(state.sum);
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
