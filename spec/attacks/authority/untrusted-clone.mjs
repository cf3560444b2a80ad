// A cloned project that is not trusted: each way in which it could execute code, with each verb.

import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, leakIn, libraryUrl } from './fixture.mjs';

/** @typedef {import('./fixture.mjs').AuthorityFixture} AuthorityFixture */

/** Packages that Rondo or a provider imports. */
const PACKAGES = [
  'libsql',
  '@libsql/linux-x64-gnu',
  'commander',
  'smol-toml',
  '@marcbachmann/cel-js',
  'json-p3',
  're2js',
  'diff',
  'semver',
  'ai',
  'zod',
  'rondo',
].concat(['@ai-sdk/openai', '@ai-sdk/anthropic', '@ai-sdk/openai-compatible', '@ai-sdk/provider']);

/** Files of packages that Rondo imports by path. */
const LOADED_FILES = ['diff/lib/patch/create.js', 'semver/functions/parse.js'];

/**
 * Returns module code that logs its execution when it is loaded.
 * @param {AuthorityFixture} fixture
 * @param {string} name
 */
const loggingModule = (fixture, name) =>
  `import { appendFileSync } from 'node:fs';\nappendFileSync(${JSON.stringify(fixture.executionLog)}, '${name}\\n');\n`;
/** Returns CommonJS code that logs its execution. @param {AuthorityFixture} fixture @param {string} name */
const loggingCommonJs = (fixture, name) =>
  `require('fs').appendFileSync(${JSON.stringify(fixture.executionLog)}, '${name}\\n');\n`;

const LOOP_EXPORT = `export const loop = { id: 'code', name: 'code', version: '1.0.0', kind: 'tool', inputSchema: {}, outputSchema: {}, tool: { implementation: 'builtin:echo' } };\n`;

/** Writes packages that shadow those of Rondo. @param {AuthorityFixture} fixture @param {string} [under] */
function writePackages(fixture, under = 'node_modules') {
  for (const name of PACKAGES) {
    fixture.write(`${under}/${name}/package.json`, { name, version: '99.0.0', main: 'index.js', type: 'commonjs' });
    fixture.write(`${under}/${name}/index.js`, loggingCommonJs(fixture, `package ${name}`));
  }
  for (const file of LOADED_FILES) fixture.write(`${under}/${file}`, loggingCommonJs(fixture, `package file ${file}`));
}

/** Ways to bring code into the project. @type {Record<string, (fixture: AuthorityFixture) => void>} */
const VECTORS = {
  mjs: (fixture) => void fixture.write('loops/code.mjs', loggingModule(fixture, 'mjs') + LOOP_EXPORT),
  js: (fixture) => {
    fixture.write('package.json', { type: 'module' });
    fixture.write('loops/code.js', loggingModule(fixture, 'js') + LOOP_EXPORT);
  },
  'common-js': (fixture) => void fixture.write('loops/code.js', loggingCommonJs(fixture, 'common js')),
  ts: (fixture) => void fixture.write('loops/code.ts', loggingModule(fixture, 'ts') + LOOP_EXPORT),
  exec: (fixture) => {
    fixture.write('loops/tool.sh', fixture.shell('exec'), 0o755);
    fixture.define('code', { tool: { implementation: 'exec:./tool.sh' } });
  },
  'exec-absolute': (fixture) => {
    fixture.write('loops/tool.sh', fixture.shell('exec'), 0o755);
    fixture.define('code', { tool: { implementation: `exec:${fixture.path('loops/tool.sh')}` } });
  },
  'exec-of-the-system': (fixture) =>
    void fixture.define('code', {
      tool: { implementation: 'exec:/bin/sh', config: { args: ['-c', `echo sh >> '${fixture.executionLog}'`] } },
    }),
  'exec-toml': (fixture) => {
    fixture.write('loops/tool.sh', fixture.shell('toml'), 0o755);
    fixture.write(
      'loops/code.toml',
      'id = "code"\nname = "code"\nversion = "1.0.0"\nkind = "tool"\ninputSchema = {}\noutputSchema = {}\n[tool]\nimplementation = "exec:./tool.sh"\n',
    );
  },
  module: (fixture) => {
    fixture.write('loops/lib/tool.mjs', fixture.module('module'));
    fixture.define('code', { tool: { implementation: 'module:./lib/tool.mjs#run' } });
  },
  'module-of-node': (fixture) =>
    void fixture.define('code', { tool: { implementation: 'module:node:child_process#execSync' } }),
  'module-data-url': (fixture) => {
    const url = `data:text/javascript,${encodeURIComponent(loggingModule(fixture, 'data'))}`;
    fixture.define('code', { tool: { implementation: `module:${url}#run` } });
  },
  command: (fixture) =>
    void fixture.define('code', {
      tool: { implementation: 'toolbox:run_command', config: { roots: ['.'], commands: { sandbox: 'off' } } },
      policy: { approval: 'always_allow' },
    }),
  'write-outside': (fixture) =>
    void fixture.define('code', {
      tool: { implementation: 'toolbox:write_file', config: { roots: [fixture.outside] } },
      policy: { approval: 'always_allow' },
    }),
  'write-inside': (fixture) =>
    void fixture.define('code', {
      tool: { implementation: 'toolbox:write_file', config: { roots: ['.'] } },
      policy: { approval: 'always_allow' },
    }),
  agent: (fixture) => {
    fixture.write('loops/tool.sh', fixture.shell('agent'), 0o755);
    fixture.define('helper', { tool: { implementation: 'exec:./tool.sh' } });
    fixture.agent('code', { tools: ['helper'] }, [{ toolCalls: [{ name: 'helper', args: {} }] }, { text: 'done' }]);
  },
  composite: (fixture) => {
    fixture.write('loops/tool.sh', fixture.shell('composite'), 0o755);
    fixture.define('helper', { tool: { implementation: 'exec:./tool.sh' } });
    fixture.define('code', {
      kind: 'composite',
      composite: { steps: [{ loopId: 'helper', inputMapping: '$.input' }] },
    });
  },
  packages: (fixture) => {
    writePackages(fixture);
    fixture.define('code', {
      kind: 'prompt',
      prompt: { template: 'x' },
      backend: { id: 'openai-compatible', model: 'm', options: { baseURL: 'http://127.0.0.1:9' } },
    });
  },
  'packages-of-loops': (fixture) => {
    writePackages(fixture, 'loops/node_modules');
    fixture.define('code', { kind: 'prompt', prompt: { template: 'x' }, backend: { id: 'openai', model: 'm' } });
  },
  'config-trusts': (fixture) => {
    fixture.write('rondo.toml', '[trust]\ndirectories = ["."]\n');
    VECTORS.exec?.(fixture);
  },
  'config-trusts-as-key': (fixture) => {
    fixture.write('rondo.toml', `trust = ["."]\ndirectories = ["${fixture.project}"]\n`);
    VECTORS.mjs?.(fixture);
  },
  'operator-file-in-project': (fixture) => {
    for (const place of [
      'trust.toml',
      '.config/rondo/trust.toml',
      'rondo/trust.toml',
      '.rondo/trust.toml',
      'loops/trust.toml',
    ])
      fixture.write(place, `directories = ["${fixture.project}", "/"]\n`, 0o600);
    VECTORS.mjs?.(fixture);
  },
  'dot-env': (fixture) => {
    fixture.write(
      '.env',
      `RONDO_TRUST=${fixture.project}\nHOME=${fixture.project}\nNODE_OPTIONS=--import ./evil.mjs\n`,
    );
    fixture.write('.npmrc', 'node-options=--import ./evil.mjs\n');
    fixture.write('.noderc', '--import ./evil.mjs\n');
    fixture.write('evil.mjs', loggingModule(fixture, 'dot env'));
    VECTORS.mjs?.(fixture);
  },
  'package-json': (fixture) => {
    const scripts = Object.fromEntries(
      ['prepare', 'start', 'preinstall', 'test'].map((name) => [name, `echo ${name} >> ${fixture.executionLog}`]),
    );
    fixture.write('package.json', {
      name: 'rondo',
      type: 'module',
      main: './evil.mjs',
      exports: { '.': './evil.mjs', './*': './evil.mjs' },
      imports: { '#x': './evil.mjs' },
      scripts,
      rondo: { trust: ['.'] },
    });
    fixture.write('evil.mjs', loggingModule(fixture, 'package.json'));
    fixture.write('node.config.json', { nodeOptions: { import: ['./evil.mjs'] } });
    VECTORS.mjs?.(fixture);
  },
  'loops-link': (fixture) => {
    fixture.write(join(fixture.outside, 'loops/code.mjs'), loggingModule(fixture, 'linked loops') + LOOP_EXPORT);
    symlinkSync(join(fixture.outside, 'loops'), fixture.path('loops2'));
    fixture.write('rondo.toml', 'loops = "loops2"\n');
  },
  'file-link': (fixture) => {
    fixture.write(join(fixture.outside, 'code.mjs'), loggingModule(fixture, 'linked file') + LOOP_EXPORT);
    symlinkSync(join(fixture.outside, 'code.mjs'), fixture.path('loops/code.mjs'));
  },
  'link-loop': (fixture) => {
    symlinkSync('code.mjs', fixture.path('loops/code.mjs'));
    symlinkSync('.', fixture.path('loops/again'));
    symlinkSync('rondo.toml', fixture.path('rondo.toml'));
  },
  'names-of-files': (fixture) => {
    for (const name of ['$(touch x).mjs', "';touch x;'.mjs", '-e.mjs', '--import=.mjs', '\u202ecode.mjs'])
      fixture.write(`loops/${name}`, loggingModule(fixture, 'name') + LOOP_EXPORT);
  },
  'own-library': (fixture) =>
    void fixture.write(
      'loops/code.mjs',
      `import { defineLoop } from ${JSON.stringify(libraryUrl)};\n${loggingModule(fixture, 'library')}export const code = defineLoop({ id: 'code', input: {}, output: {}, tool: () => ({}) });\n`,
    ),
};

/** The arguments of verbs. T stands for a turn of the session `s`. */
const VERBS = {
  run: ['run', 'code', '--input', '{"command":"true","path":"x","content":"y"}'],
  'run-file': ['run', './loops/code.mjs'],
  'run-document': ['run', 'loops/code.json'],
  list: ['list'],
  show: ['show', 'code'],
  'plan-convert': ['plan', 'convert', 'loops/code.json'],
  'show-file': ['show', './loops/code.mjs'],
  check: ['check'],
  'check-files': ['check', 'loops/code.mjs', 'loops/code.json'],
  doctor: ['doctor'],
  chat: ['chat', 'code'],
  resume: ['resume', 'T'],
  'resume-all': ['resume', '--all'],
  fork: ['fork', 'T', '--at', '1'],
  replay: ['replay', 'T'],
  'replay-now': ['replay', 'T', '--now'],
  approve: ['approve', 'T'],
  deny: ['deny', 'T'],
  resolve: ['resolve', 'T', '--retry'],
  approvals: ['approvals'],
  events: ['events', 's'],
  trace: ['trace', 'T'],
  status: ['status', 'T'],
  diff: ['diff', 'T', 'T'],
  runs: ['runs'],
  cancel: ['cancel', 'T'],
  conformance: ['conformance', '--only', 'none'],
  remove: ['remove', 's'],
  receipts: ['receipts', 'T'],
  verify: ['verify', 'T'],
  'verify-all': ['verify', '--all'],
  export: ['export', '--turn', 'T'],
  keys: ['keys', 'show'],
  close: ['close', 's'],
  demo: ['demo'],
  trust: ['trust'],
  help: ['help'],
  version: ['--version'],
};

/** Starts a turn of a harmless loop, which waits for approval. @param {AuthorityFixture} fixture */
async function startTurn(fixture) {
  fixture.define('harmless', { tool: { implementation: 'builtin:echo', safety: 'pure' }, policy: { approval: 'ask' } });
  const { turnId } = await fixture.json(['run', 'harmless', '--session', 's'], {});
  return turnId;
}

/**
 * Runs a verb: no code is executed, no file written and no secret printed.
 * @param {AuthorityFixture} fixture
 * @param {readonly string[]} args
 * @param {string} turn
 */
async function assertVerbSafe(fixture, args, turn) {
  const ended = await fixture.rondo(
    args.map((arg) => (arg === 'T' ? turn : arg)),
    { input: 'hello\ny\n' },
  );
  fixture.assertNothingExecuted();
  const written = ['loops/x', 'x', join(fixture.outside, 'x')].filter((name) =>
    existsSync(resolve(fixture.project, name)),
  );
  expect(written.length === 0, 'no file to be written', written);
  expect(
    leakIn(ended.stdout + ended.stderr) === undefined,
    'no secret to be printed',
    leakIn(ended.stdout + ended.stderr),
  );
}

/** @returns {import('../runner.mjs').Case[]} */
export const cases = () => {
  const combined = [
    'dot-env',
    'operator-file-in-project',
    'exec',
    'module',
    'agent',
    'packages',
    'ts',
    'names-of-files',
    'mjs',
  ];
  const perVerb = Object.entries(VERBS).map(([name, args]) => ({
    id: `trust.verb.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      const turn = await startTurn(fixture);
      for (const vector of combined) VECTORS[vector]?.(fixture);
      await assertVerbSafe(fixture, args, turn);
    },
  }));
  const perVector = Object.entries(VECTORS).flatMap(([name, plant]) =>
    /** @type {const} */ (['run', 'check', 'chat']).map((verb) => ({
      id: `trust.vector.${name}.${verb}`,
      run: async (/** @type {AuthorityFixture} */ fixture) => {
        mkdirSync(fixture.path('loops'), { recursive: true });
        plant(fixture);
        await assertVerbSafe(fixture, VERBS[verb], 's');
      },
    })),
  );
  return [...perVerb, ...perVector];
};
