// Checks of plans: each holds on the intact library and fails when its guard is broken.

import { match, strictEqual, throws } from 'node:assert';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PlanSpec } from '../../src/protocol/plan.js';
import type { TurnResult } from '../../src/protocol/trace.js';
import { textProvider } from '../support/host-fixture.js';
import { planDefinition } from '../support/plan-fixture.js';
import { errorOf } from '../support/turn-results.js';
import { type HostLibrary, hostParts, type LibraryParts } from './library.js';

export const planParts: LibraryParts = [
  ...hostParts,
  'adapters/files/load.js',
  'adapters/files/file-exists.js',
  'loops/plan/workflow-document.js',
];

type PlanLibrary = HostLibrary &
  typeof import('../../src/adapters/files/load.js') &
  typeof import('../../src/adapters/files/file-exists.js') &
  typeof import('../../src/loops/plan/workflow-document.js');

type PlanCheck = (library: PlanLibrary) => Promise<void>;

/** Runs a plan whose verb `view` returns its input, and whose model answers with these texts. */
async function runPlan(library: HostLibrary, plan: PlanSpec, replies: readonly string[] = []): Promise<TurnResult> {
  const registry = new library.Registry();
  const tool = (input: unknown): unknown => input;
  registry.add(library.defineLoop({ id: 'echo', input: true, output: true, safety: 'idempotent', tool }));
  registry.add(planDefinition('main', { verbs: { view: 'echo' }, backend: { id: 'replies' }, ...plan }));
  const host = new library.Host({
    store: library.memoryStore(),
    clock: new library.ManualClock(1_000_000),
    ids: library.seededIds(1),
    registry,
    providers: new Map([['replies', textProvider(replies)]]),
  });
  return host.run({ loop: 'main', input: {} });
}

/** Asserts that a plan stopped for this reason. */
function assertStopped(result: TurnResult, reason: RegExp): void {
  strictEqual(result.status, 'stopped');
  match(result.status === 'stopped' ? result.reason : '', reason);
}

const WORKFLOW = '[[steps]]\nloop = "echo"\n';

/** Calls `work` with a directory of a project that has a file `outside.toml` next to it. */
async function inProject(work: (directory: string) => Promise<void>): Promise<void> {
  const parent = realpathSync(mkdtempSync(join(tmpdir(), 'rondo-plan-')));
  const directory = join(parent, 'project');
  mkdirSync(directory);
  writeFileSync(join(parent, 'outside.toml'), WORKFLOW);
  writeFileSync(join(directory, 'inside.toml'), WORKFLOW);
  try {
    await work(directory);
  } finally {
    rmSync(parent, { recursive: true });
  }
}

const RETRIED: PlanSpec = { steps: [{ loop: 'pay', retry: { strategy: 'immediate' } }] };

export const planChecks = {
  'a plan that retries a once tool is refused at registration': async ({ Registry, defineLoop }) => {
    const registry = new Registry();
    registry.add(defineLoop({ id: 'pay', input: true, output: true, tool: () => 1 }));
    throws(() => registry.add(planDefinition('main', RETRIED)), /safety/);
  },
  'a plan that retries a once tool which was registered later does not start': async (library) => {
    const registry = new library.Registry();
    registry.add(planDefinition('main', RETRIED));
    registry.add(library.defineLoop({ id: 'pay', input: true, output: true, tool: () => 1 }));
    const [store, clock, ids] = [library.memoryStore(), new library.ManualClock(1), library.seededIds(1)];
    const result = await new library.Host({ store, clock, ids, registry }).run({ loop: 'main', input: {} });
    strictEqual(errorOf(result)?.code, 'DEFINITION_INVALID');
  },

  'a plan stops at its limit of transitions': async (library) => {
    const repeat = { steps: [{ action: 'view {iteration}' }], until: 'iteration >= 9' };
    const plan: PlanSpec = { steps: [{ type: 'repeat', repeat }], limits: { max_transitions: 3 } };
    assertStopped(await runPlan(library, plan), /transition/);
  },

  'a plan stops at its limit of model calls': async (library) => {
    const repeat = { steps: [{ prompt: 'Number {iteration}' }], max: 9 };
    const plan: PlanSpec = { steps: [{ type: 'repeat', repeat }], limits: { max_turns: 3 } };
    assertStopped(
      await runPlan(
        library,
        plan,
        Array.from({ length: 9 }, () => 'a reply'),
      ),
      /turn/,
    );
  },

  'a plan that runs the same action again and again stops': async (library) => {
    const repeat = { steps: [{ action: 'view x' }], max: 9 };
    assertStopped(await runPlan(library, { steps: [{ type: 'repeat', repeat }] }), /stall/);
  },

  'a reply that is not exactly a state chooses none': async (library) => {
    const states = [{ name: 'decide', plugin: 'llm-decide' }] as unknown as NonNullable<PlanSpec['states']>;
    const result = await runPlan(library, { states }, ['done, I think']);
    match(errorOf(result)?.message ?? '', /which is none of decide, done, failed/);
  },

  'file_exists finds no file outside of the project': (library) =>
    inProject(async (directory) => {
      const exists = library.fileExistsIn(directory);
      strictEqual(await exists('inside.toml'), true);
      strictEqual(await exists('../outside.toml'), false);
    }),

  'a workflow calls no workflow file outside of its directory': (library) =>
    inProject(async (directory) => {
      const options = { trusted: () => false, parser: library.documentParser };
      const load = async (path: string): Promise<string> => {
        const file = join(directory, 'main.toml');
        writeFileSync(file, `[[steps]]\nworkflow = "${path}"\n`);
        const { badFiles } = await library.loadDefinitionFile(file, options);
        return badFiles.map(({ reason }) => reason).join();
      };
      strictEqual(await load('inside.toml'), '');
      match(await load('../outside.toml'), /outside of the directory/);
    }),
} as const satisfies Record<string, PlanCheck>;
