// Checks of what bounds a model call: the tokens that are counted, and the time that it may take.

import { rejects, strictEqual } from 'node:assert/strict';
import type { Effect, OutputMeter } from '../../src/protocol/body.js';
import type { LibraryParts } from './library.js';

export const modelLimitParts: LibraryParts = [
  'adapters/memory/index.js',
  'host/budget/interruption.js',
  'host/budget/ledger.js',
  'host/budget/model-budget.js',
  'loops/model-call/model-effect.js',
  'loops/model-call/reply-builder.js',
  'loops/watchdog.js',
  'policy/token-count.js',
  'testing/manual-clock.js',
];

type ModelLimitLibrary = typeof import('../../src/adapters/memory/index.js') &
  typeof import('../../src/host/budget/interruption.js') &
  typeof import('../../src/host/budget/ledger.js') &
  typeof import('../../src/host/budget/model-budget.js') &
  typeof import('../../src/loops/model-call/model-effect.js') &
  typeof import('../../src/loops/model-call/reply-builder.js') &
  typeof import('../../src/loops/watchdog.js') &
  typeof import('../../src/policy/token-count.js') &
  typeof import('../../src/testing/manual-clock.js');

type ModelLimitCheck = (library: ModelLimitLibrary) => Promise<void>;

const request = { backendId: 'b', model: 'm', promptLength: 1, prompt: 'p' };
const never = (): Promise<never> => new Promise(() => {});

export const modelLimitChecks = {
  'a reply counts at least its words': async ({ tokensOf }) => {
    strictEqual(tokensOf({ text: 'one two three', outputTokens: 1 }, 0, 0).outputTokens, 3);
  },
  'a reply counts at least its pieces': async ({ Ledger, ModelBudget, ManualClock, memoryStore }) => {
    const limits = { outputTokens: 9 };
    const document = { allowedTools: ['*'], limits };
    const ledger = await Ledger.open({ store: memoryStore(), clock: new ManualClock(1) }, 'g', document);
    const accounts = [{ id: '', limits }];
    const budget = new ModelBudget(
      accounts,
      ledger,
      () => undefined,
      () => 0,
    );
    const perform: Effect['perform'] = (_, { outputMeter }) => {
      for (let n = 0; n < 5; n++) outputMeter?.addPiece('x');
      return { text: 'xxxxx', outputTokens: 1 };
    };
    const effect: Effect = { kind: 'model', name: 'b', input: null, safety: 'idempotent', perform };
    const reserved = budget.reserve(effect, null, { turn: 't', effect: 't/0', accounts, isOpen: true });
    if ('counter' in reserved) throw new Error('nothing was reserved');
    const context = { idempotencyKey: 'k', signal: new AbortController().signal };
    await budget.perform(effect, null, context, reserved, () => undefined);
    strictEqual(ledger.budget.usedOf('', 'outputTokens'), 5);
  },
  'a piece that is no part of the reply is counted': async ({ ModelReplyBuilder }) => {
    const pieces: string[] = [];
    const outputMeter: OutputMeter = { maxTokens: 9, addPiece: (piece) => void pieces.push(piece) };
    const builder = new ModelReplyBuilder({ request }, { outputMeter });
    builder.addStreamPart({ type: 'tool-input-delta', id: 'unknown', delta: '{' });
    strictEqual(pieces.join(), '{');
  },
  'a silent model is interrupted': async ({ Interruption }) => {
    const interruption = new Interruption();
    const waiting = interruption.until(never());
    interruption.interrupt();
    await rejects(waiting, { name: 'NotPerformed' });
  },
  'a silent model times out': async ({ modelEffect, ManualClock, Watchdog }) => {
    const clock = new ManualClock(1);
    const services = {
      ...{ clock, overridesModels: false },
      provider: () => ({ open: never }),
      turnContext: () => ({ watchdog: new Watchdog(clock), replyCount: () => 0 }),
    };
    const effect = modelEffect(request, { services, scope: { key: 't' }, replyCountScope: 'turn' } as never);
    const context = { idempotencyKey: 'k', signal: new AbortController().signal };
    const failing = rejects(async () => effect.perform(request, context), { code: 'BACKEND_FAILED' });
    await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(600_000);
    await failing;
  },
} satisfies { readonly [promise: string]: ModelLimitCheck };
