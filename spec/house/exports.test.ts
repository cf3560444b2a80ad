// Pins the public names. Adding or removing one is a decision: edit the list in the same change.

import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { typeStarExports } from './hygiene.js';
import { absolute, isTest, readText, sources } from './tree.js';

const pinned: Readonly<Record<string, readonly string[]>> = {
  '.': [
    'ApprovalRequiredError',
    'Fault',
    'LoopError',
    'NonRetryableError',
    'TurnPaused',
    'TurnStopped',
    'createRondo',
    'defineAgent',
    'defineHostedLoop',
    'defineLoop',
    'definePlan',
    'defineSignal',
    'errorCodes',
    'tool',
  ],
  './host': [
    'Host',
    'Registry',
    'Session',
    'anthropicProvider',
    'builtinTools',
    'contextFilesIn',
    'execTools',
    'expandLeaves',
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
  './protocol': ['ApprovalRequiredError', 'EVENT_TYPES', 'approvalText', 'loopsTool', 'tool'],
  './protocol/events': ['EVENT_TYPES'],
  './protocol/streaming': [],
  './protocol/tools': ['ApprovalRequiredError', 'loopsTool', 'tool'],
  './signals': ['nodeListener', 'signDelivery', 'signalHandler'],
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
    'scriptedProvider',
    'seededIds',
    'seededRandom',
    'wasReported',
    'startEffectSink',
  ],
  './toolbox': ['toolbox', 'toolboxTools'],
  './tools': ['ApprovalRequiredError', 'loopsTool', 'tool'],
};

interface Subpath {
  readonly types: string;
  readonly default: string;
}

const subpaths: Readonly<Record<string, Subpath>> = JSON.parse(readText('package.json')).exports;

const sourceOf = (built: string): string => built.replace(/^\.\/lib\//, 'src/').replace(/\.js$/, '.ts');

function changes(subpath: string, expected: readonly string[], actual: readonly string[]): string {
  const added = actual.filter((name) => !expected.includes(name));
  const removed = expected.filter((name) => !actual.includes(name));
  return `exports of '${subpath}' changed (new: ${added.join(', ') || 'none'}; removed: ${removed.join(', ') || 'none'}). If this is intended, edit the list in spec/house/exports.test.ts`;
}

verifies('house.exports', 'every published subpath has a pinned list of names', () => {
  expect(Object.keys(subpaths).sort()).toEqual(Object.keys(pinned).sort());
});

for (const [subpath, target] of Object.entries(subpaths)) {
  verifies('house.exports', `'${subpath}' exports exactly its pinned names`, async () => {
    const file = sourceOf(target.default);
    const expected = pinned[subpath] ?? [];
    const actual = Object.keys(await import(absolute(file))).sort();
    expect(actual, changes(subpath, expected, actual)).toEqual([...expected].sort());
  });

  verifies('house.exports', `'${subpath}' has the types of the file that it loads`, () => {
    expect(target.types).toBe(target.default.replace(/^\.\/lib\//, './dist/').replace(/\.js$/, '.d.ts'));
  });
}

verifies('house.exports', 'no file exports types by star', () => {
  const files = sources(['src']).filter(({ file }) => !isTest(file));
  expect(files.flatMap(typeStarExports)).toEqual([]);
});

verifies('house.exports', 'every spelling of a star export of types is found', () => {
  const stars = (text: string): number => typeStarExports({ file: 'src/a.ts', text }).length;
  expect(stars("export type * from './b.js';")).toBe(1);
  expect(stars("export type * as b from './b.js';")).toBe(1);
  expect(stars("// export type * from './b.js';\nexport type { B } from './b.js';")).toBe(0);
});
