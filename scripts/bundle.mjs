// Makes lib/, what the package ships, of dist/, what the compiler made: one file for each entry and one for each part that
// entries share or load late. Opening a file costs a program more than running it, and there are hundreds.

import { readFileSync, rmSync } from 'node:fs';
import { rolldown } from 'rolldown';

const root = new URL('..', import.meta.url);
/** @type {{ exports: Record<string, { default: string }>, bin: Record<string, string> }} */
const { exports, bin } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));

const shipped = [...Object.values(exports).map((target) => target.default), ...Object.values(bin)];
const names = [...new Set(shipped.map((file) => file.replace(/^\.\/lib\//, '').replace(/\.js$/, '')))];
/** What front ends import stands alone: a second file would cost more than all that is in it. */
const alone = ['protocol/events', 'protocol/streaming'];
/**
 * Packages are not bundled, nor is what `rondo/protocol` re-exports of a file that stands alone: both paths give one object.
 * @param {string} id
 * @param {string | undefined} importer
 */
const external = (id, importer) =>
  /^[^./]/.test(id) || (id === './events.js' && importer?.endsWith('/dist/protocol/index.js') === true);

/**
 * What is small and needed together: a file of its own would cost each of them more than all that is in it. What is loaded
 * late stays out: it brings what Node needs for the network with it.
 */
const groups = [
  {
    name: 'base',
    test: /\/dist\/(?:base\/(?!announcement|redact|decod|binary|secret|process-group)|json\/(?:value|canonical)|journal\/(?:blob-parts|record|leases)\b|loops\/definition\/(?:loop-identity|shape)\b)/,
  },
  { name: 'tools', test: /\/dist\/adapters\/tools\/(?!approved-program|run-process|post)/ },
];

rmSync(new URL('lib', root), { recursive: true, force: true });
for (const entries of [names.filter((name) => !alone.includes(name)), ...alone.map((name) => [name])]) {
  const input = Object.fromEntries(entries.map((name) => [name, `dist/${name}.js`]));
  const bundle = await rolldown({ input, cwd: new URL('.', root).pathname, platform: 'node', external });
  await bundle.write({
    dir: 'lib',
    format: 'esm',
    comments: false,
    entryFileNames: '[name].js',
    chunkFileNames: 'parts/[name]-[hash].js',
    codeSplitting: { groups },
  });
  await bundle.close();
}
