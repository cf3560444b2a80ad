// The public names, pinned. A name that appears or goes is a decision: edit the list in the same change.

import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { starExports } from './hygiene.js';
import { absolute, isTest, readText, sources } from './tree.js';

const pinned: Readonly<Record<string, readonly string[]>> = {
  '.': [
    'Fault',
    'Host',
    'LoopError',
    'Registry',
    'Session',
    'anthropicProvider',
    'builtinTools',
    'errorCodes',
    'defineAgent',
    'defineLoop',
    'execTools',
    'httpTools',
    'httpsTools',
    'memoryStore',
    'mockProvider',
    'moduleTools',
    'openaiProvider',
    'openaiCompatibleProvider',
    'permitsOf',
    'scriptedProvider',
    'systemClock',
    'systemIds',
  ],
  './ai-sdk': ['UiChunks', 'chatHandler', 'chatSession', 'nodeListener', 'toAISDKTool', 'toolKinds', 'uiMessages'],
  './events': ['EVENT_TYPES'],
  './protocol': ['ApprovalRequiredError', 'EVENT_TYPES', 'loopsTool'],
  './protocol/events': ['EVENT_TYPES'],
  './protocol/streaming': [],
  './protocol/tools': ['ApprovalRequiredError', 'loopsTool'],
  './sqlite': ['openDriver', 'openSqlite'],
  './streaming': [],
  './testing': [
    'ManualClock',
    'programEffectResult',
    'crashingStore',
    'journalCases',
    'checkConformance',
    'programLoop',
    'randomProgram',
    'renderConformance',
    'reportEffect',
    'rondoDriver',
    'seededIds',
    'seededRandom',
    'wasReported',
    'startEffectSink',
  ],
  './toolbox': ['toolbox', 'toolboxTools'],
  './tools': ['ApprovalRequiredError', 'loopsTool'],
};

interface Subpath {
  readonly types: string;
  readonly default: string;
}

const subpaths: Readonly<Record<string, Subpath>> = JSON.parse(readText('package.json')).exports;

const sourceOf = (built: string): string => built.replace(/^\.\/lib\//, 'src/').replace(/\.js$/, '.ts');

function changes(subpath: string, expected: readonly string[], actual: readonly string[]): string {
  const added = actual.filter((name) => !expected.includes(name));
  const gone = expected.filter((name) => !actual.includes(name));
  return `exports of '${subpath}' changed (new: ${added.join(', ') || 'none'}; gone: ${gone.join(', ') || 'none'}). If you meant it, edit the list in spec/house/exports.test.ts`;
}

verifies('house.exports', 'a subpath is published without a pinned list', () => {
  expect(Object.keys(subpaths).sort()).toEqual(Object.keys(pinned).sort());
});

for (const [subpath, target] of Object.entries(subpaths)) {
  verifies('house.exports', `a name slips into or out of '${subpath}'`, async () => {
    const file = sourceOf(target.default);
    const expected = pinned[subpath] ?? [];
    const actual = Object.keys(await import(absolute(file))).sort();
    expect(actual, changes(subpath, expected, actual)).toEqual([...expected].sort());
  });

  verifies('house.exports', `the types of '${subpath}' are those of another file`, () => {
    expect(target.types).toBe(target.default.replace(/^\.\/lib\//, './dist/').replace(/\.js$/, '.d.ts'));
  });
}

verifies('house.exports', 'a star exports what nobody chose', () => {
  const files = sources(['src']).filter(({ file }) => !isTest(file));
  expect(files.flatMap(starExports)).toEqual([]);
});

verifies('house.exports', 'a star export hides behind its spelling', () => {
  const stars = (text: string): number => starExports({ file: 'src/a.ts', text }).length;
  expect(stars("export * from './b.js';")).toBe(1);
  expect(stars("export * as b from './b.js';")).toBe(1);
  expect(stars("export type * from './b.js';")).toBe(1);
  expect(stars("// export * from './b.js';\nexport { b } from './b.js';")).toBe(0);
});
