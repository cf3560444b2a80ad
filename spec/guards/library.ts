// The parts of the library that most guards belong to. The imports of a part are compiled with it.

import { fileURLToPath } from 'node:url';

/** The modules that a check uses, as paths below `src`. */
export type LibraryParts = readonly string[];

/** Loads the intact library from its source. `folder` has the same modules, built. */
export async function loadLibrary<L>(parts: LibraryParts): Promise<L> {
  const sources = parts.map((part) => new URL(`../../src/${part.replace(/\.js$/, '.ts')}`, import.meta.url).href);
  const loaded = await Promise.all(sources.map((source) => import(/* @vite-ignore */ source)));
  return Object.assign({ folder: fileURLToPath(new URL('../../dist', import.meta.url)) }, ...loaded) as L;
}

export const kernelParts: LibraryParts = [
  'kernel/session.js',
  'base/errors.js',
  'adapters/memory/index.js',
  'adapters/sqlite/index.js',
  'testing/crashing-store.js',
  'testing/journal-cases.js',
  'testing/manual-clock.js',
  'adapters/system/seeded-ids.js',
];

export type Library = typeof import('../../src/kernel/session.js') &
  typeof import('../../src/base/errors.js') &
  typeof import('../../src/adapters/memory/index.js') &
  typeof import('../../src/adapters/sqlite/index.js') &
  typeof import('../../src/testing/crashing-store.js') &
  typeof import('../../src/testing/journal-cases.js') &
  typeof import('../../src/testing/manual-clock.js') &
  typeof import('../../src/adapters/system/seeded-ids.js') & { readonly folder: string };

/** The modules that a turn uses, for the guards of approvals and definitions. */
export const hostParts: LibraryParts = [
  'kernel/session.js',
  'adapters/memory/index.js',
  'testing/manual-clock.js',
  'adapters/system/seeded-ids.js',
  'host/host.js',
  'layers/approval.js',
  'loops/define.js',
  'loops/registry.js',
];

export type HostLibrary = typeof import('../../src/kernel/session.js') &
  typeof import('../../src/adapters/memory/index.js') &
  typeof import('../../src/testing/manual-clock.js') &
  typeof import('../../src/adapters/system/seeded-ids.js') &
  typeof import('../../src/host/host.js') &
  typeof import('../../src/layers/approval.js') &
  typeof import('../../src/loops/define.js') &
  typeof import('../../src/loops/registry.js');
