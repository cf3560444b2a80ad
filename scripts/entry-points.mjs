// The entry points of the package that have a page of the API reference, and those whose types the pages refer to.

/** @typedef {{ specifier: string, entry: string, page: string, introduction: string }} EntryPoint */

/** @type {readonly EntryPoint[]} */
export const entryPoints = [
  {
    specifier: 'rondo',
    entry: 'index.ts',
    page: 'rondo.md',
    introduction: "What is below `createRondo` is in `'rondo/host'`.",
  },
  {
    specifier: 'rondo/ai-sdk',
    entry: 'surfaces/ai-sdk/index.ts',
    page: 'ai-sdk.md',
    introduction:
      'In use: [the AI SDK](../guides/ai-sdk.md), [Hono](../cookbook/hono.md), [React](../cookbook/react.md).',
  },
  {
    specifier: 'rondo/signals',
    entry: 'surfaces/signals/index.ts',
    page: 'signals.md',
    introduction: 'In use: [signals of hosted loops](../signals.md).',
  },
  {
    specifier: 'rondo/testing',
    entry: 'testing/index.ts',
    page: 'testing.md',
    introduction: 'In use: [testing an agent](../cookbook/testing.md).',
  },
  {
    specifier: 'rondo/toolbox',
    entry: 'adapters/toolbox/index.ts',
    page: 'toolbox.md',
    introduction: 'In use: [the toolbox](../guides/toolbox.md).',
  },
];
/** `rondo/protocol` and `rondo/host`, which have no page. */
export const protocolEntry = 'protocol/index.ts';
export const hostEntry = 'host-entry.ts';
