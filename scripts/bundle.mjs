// Bundles dist/, the output of the compiler, into lib/, which the package ships: one file for each entry point and one
// for each part that entry points share or load lazily. Opening hundreds of files takes longer than running them.

import { readFileSync, rmSync } from 'node:fs';
import { rolldown } from 'rolldown';

const root = new URL('..', import.meta.url);
/** @type {{ exports: Record<string, { default: string }>, bin: Record<string, string> }} */
const { exports, bin } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));

const targets = [...Object.values(exports).map((target) => target.default), ...Object.values(bin)];
const names = [...new Set(targets.map((file) => file.replace(/^\.\/lib\//, '').replace(/\.js$/, '')))];
/** Entry points for front ends. Each is one file, because a second one would cost more than its content. */
const standalone = ['protocol/events', 'protocol/streaming'];
/**
 * True for packages, and for the standalone file that `rondo/protocol` re-exports, so that both paths return the same
 * objects.
 * @param {string} id
 * @param {string | undefined} importer
 */
const external = (id, importer) =>
  /^[^./]/.test(id) || (id === './events.js' && importer?.endsWith('/dist/protocol/index.js') === true);

/**
 * Small modules that are needed together; a separate file for each would cost more than its content. Lazily loaded
 * modules are excluded, because they load Node's network modules.
 */
const groups = [
  {
    name: 'base',
    test: /\/dist\/(?:base\/(?!announcement|redact|decod|binary|secret|process-group)|json\/(?:value|canonical)|journal\/(?:blob-parts|record|leases)\b|loops\/definition\/(?:loop-identity|shape)\b)/,
  },
  { name: 'tools', test: /\/dist\/adapters\/tools\/(?!approved-program|run-process|post)/ },
  {
    name: 'registry',
    test: /\/dist\/loops\/(?:defined-loop|failed-definition|model-ref|registry|tool-implementation)\b/,
  },
  { name: 'cli', test: /\/dist\/surfaces\/(?:settings|cli\/(?:error-report|terminal-text|verbs?))\./ },
  {
    name: 'project',
    test: /\/dist\/(?:adapters\/files\/(?:document-read-error|parse-toml|read-text)|surfaces\/(?:authority|compose\/(?:adapters|project-loops|project-settings)))\b/,
  },
];

rmSync(new URL('lib', root), { recursive: true, force: true });
for (const entries of [names.filter((name) => !standalone.includes(name)), ...standalone.map((name) => [name])]) {
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
