/** `close` ends in bounded time, whatever other processes do. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { createRondo, defineLoop } from '../../index.js';

const ANY = { input: true, output: true } as const;

/** A loop whose two effects take a moment each. */
const slow = defineLoop({
  ...ANY,
  id: 'slow',
  run: async (_, scope) => {
    for (const name of ['first', 'second'])
      await scope.effect({ kind: 'test', name, input: null, safety: 'pure', perform: () => sleep(100, name) });
    return 'done';
  },
});

const held = defineLoop({ ...ANY, id: 'held', run: (_, scope) => scope.sleep(9000) });

function newStore(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-close-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return `sqlite:${join(folder, 'journal.db')}`;
}

const CLOSE_MS = 30_000;

verifies(
  'rondo.close',
  'a result that no process will produce does not keep the runtime from closing',
  async () => {
    const store = newStore();
    const first = await createRondo({ store });
    const { id } = await first.start(slow, null);
    await first.close();
    const second = await createRondo({ store });
    expect(await second.turn(id).status()).toMatchObject({ status: 'interrupted' });
    const result = second.turn(id).result();
    result.catch(() => undefined);
    await sleep(50);
    await second.close();
    await expect(result).rejects.toMatchObject({ code: 'SESSION_CLOSED' });
    await using third = await createRondo({ store, loops: [slow] });
    expect(await third.turn(id).output()).toBe('done');
  },
  CLOSE_MS,
);

verifies(
  'rondo.close',
  'a turn that another runtime holds does not keep a runtime from closing that waits for it',
  async () => {
    const store = newStore();
    await using holder = await createRondo({ store });
    const turn = await holder.start(held, null);
    const waiting = await createRondo({ store });
    const waits = [waiting.resume(turn.id, held), waiting.turn(turn.id).result()];
    for (const wait of waits) wait.catch(() => undefined);
    await sleep(50);
    await waiting.close();
    for (const wait of waits) await expect(wait).rejects.toMatchObject({ code: 'SESSION_CLOSED' });
    expect(await turn.status()).toMatchObject({ status: 'running' });
  },
  CLOSE_MS,
);
