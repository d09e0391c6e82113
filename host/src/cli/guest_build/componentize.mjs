// Called as: node componentize.mjs LIBRARY SOURCE WIT WORLD OUT
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [library, source, wit, world, out] = process.argv.slice(2);
const { main, exports } = JSON.parse(await readFile(join(library, 'package.json'), 'utf8'));
const entry = exports?.import ?? exports?.['.']?.import ?? main ?? 'src/componentize.js';
const { componentize } = await import(pathToFileURL(join(library, entry)));

try {
  const { component } = await componentize({
    sourcePath: resolve(source),
    witPath: resolve(wit),
    worldName: world,
    disableFeatures: ['stdio', 'random', 'clocks', 'http', 'fetch-event'],
  });
  await writeFile(out, component);
} catch (error) {
  // The stack is that of the tool, and tells an author nothing.
  console.error(error.message);
  process.exit(1);
}
