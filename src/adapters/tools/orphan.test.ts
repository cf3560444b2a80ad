/** Nothing that an executable starts outlives its call, and nothing that it does holds us up. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, expect } from 'vitest';
import {
  built,
  call,
  cleanUp,
  failure,
  goes,
  node,
  pidIn,
  runs,
  sh,
  takes,
  thrown,
  trusted,
} from '../../../spec/support/tools-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { execTools } from './index.js';

afterAll(cleanUp);

const reason = new Error('cancelled');

interface Aborted {
  readonly directory: string;
  readonly pids: readonly number[];
  readonly ms: number;
  readonly with: unknown;
}

/** Starts a script that writes its number to `pid`, aborts it, and tells how long it took to go. */
async function aborted(script: string, config = {}): Promise<Aborted> {
  const origin = trusted({ tool: script });
  const tool = await execTools().open('tool', origin, config);
  const controller = new AbortController();
  const working = thrown(tool(null, call({ signal: controller.signal })));
  const pids = [await pidIn(join(origin.directory, 'pid'))];
  if (script.includes('> child')) pids.push(await pidIn(join(origin.directory, 'child')));
  const from = performance.now();
  controller.abort(reason);
  return { with: await working, ms: performance.now() - from, pids, directory: origin.directory };
}

verifies('tool.orphan', 'a tool that was aborted goes on', async () => {
  const result = await aborted(sh('echo $$ > pid; exec sleep 60'), { killGraceMs: 10_000 });
  expect(result.with).toBe(reason);
  expect(result.ms).toBeLessThan(5000);
  expect(result.pids.filter(runs)).toEqual([]);
});

verifies('tool.orphan', 'a tool that ignores SIGTERM cannot be stopped', async () => {
  const deaf = node(
    `process.on('SIGTERM', () => {}); require('fs').writeFileSync('pid', String(process.pid)); setInterval(() => {}, 1000)`,
  );
  const result = await aborted(deaf);
  expect(result.with).toBe(reason);
  expect(result.ms).toBeGreaterThan(450);
  expect(result.ms).toBeLessThan(5000);
  expect(result.pids.filter(runs)).toEqual([]);
  const sooner = await aborted(deaf, { killGraceMs: 0 });
  expect(sooner.with).toBe(reason);
  expect(sooner.pids.filter(runs)).toEqual([]);
});

verifies('tool.orphan', 'a tool gets no chance to tidy up', async () => {
  const tidy = sh(`trap 'echo tidied > trace; exit 0' TERM; echo $$ > pid; while :; do sleep 0.02; done`);
  const result = await aborted(tidy, { killGraceMs: 10_000 });
  expect(result.with).toBe(reason);
  expect(existsSync(join(result.directory, 'trace'))).toBe(true);
  expect(result.ms).toBeLessThan(5000);
});

verifies('tool.orphan', 'a stopped tool, or one that is deep in children, survives its call', async () => {
  const stopped = await aborted(sh('echo $$ > pid; kill -STOP $$'));
  expect(stopped.with).toBe(reason);
  expect(stopped.pids.filter(runs)).toEqual([]);
  const nested = await aborted(
    sh(`sh -c 'trap "" TERM; sh -c "echo \\$\\$ > child; exec sleep 60"; :' & echo $$ > pid; wait`),
  );
  expect(nested.with).toBe(reason);
  for (const pid of nested.pids) expect(await goes(pid)).toBe(true);
});

verifies('tool.orphan', 'a call that was aborted before it began starts a process', async () => {
  const origin = trusted({ tool: sh('echo $$ > pid; echo 1') });
  const tool = await execTools().open('tool', origin, {});
  expect(await thrown(tool(null, call({ signal: AbortSignal.abort(reason) })))).toBe(reason);
  await setTimeout(100);
  expect(existsSync(join(origin.directory, 'pid'))).toBe(false);
});

verifies(
  'tool.orphan',
  'one of 200 tools that end and leave a child behind leaves it running',
  async () => {
    const origin = trusted({ tool: sh('sleep 300 >/dev/null 2>&1 </dev/null & echo $!') });
    const tool = await execTools().open('tool', origin, {});
    const pids: number[] = [];
    for (let i = 0; i < 25; i++) {
      const batch = await Promise.all(Array.from({ length: 8 }, async () => tool(null, call())));
      pids.push(...batch.map(Number));
    }
    expect(new Set(pids).size).toBe(200);
    for (const pid of pids) expect(await goes(pid)).toBe(true);
  },
  120_000,
);

verifies('tool.orphan', 'a child that keeps the pipes open holds up a tool that has ended', async () => {
  const origin = trusted({ tool: sh('sleep 300 & echo $!'), bad: sh('sleep 300 & echo $! >&2; exit 1') });
  const tool = await execTools().open('tool', origin, {});
  const bad = await execTools().open('bad', origin, {});
  let pid = 0;
  const time = await takes(async () => {
    pid = Number(await tool(null, call()));
  });
  expect(time).toBeLessThan(5000);
  expect(await goes(pid)).toBe(true);
  expect(await goes(Number((await failure(bad(null, call()))).message))).toBe(true);
});

verifies('tool.orphan', 'a process that left the group and keeps the pipes holds us up', async () => {
  const escaping = (command: string): string =>
    node(`require('child_process').spawn('sh', ['-c', ${JSON.stringify(command)}], { detached: true, stdio: 'inherit' }).unref();
      process.on('exit', () => require('fs').writeSync(1, '5'));`);
  const origin = trusted({
    quiet: escaping('sleep 10'),
    loud: escaping('while :; do echo y || exit; done'),
    noisy: escaping('while :; do echo y >&2 || exit; done'),
  });
  const outcome = async (name: string): Promise<{ ms: number; result: unknown }> => {
    const tool = await execTools().open(name, origin, {});
    let result: unknown;
    const ms = await takes(async () => {
      result = await thrown(tool(null, call()));
    });
    return { ms, result };
  };
  const quiet = await outcome('quiet');
  expect(quiet).toMatchObject({ result: { returned: 5 } });
  const loud = await outcome('loud');
  expect(loud.result).toMatchObject({ code: 'TOOL_FAILED' });
  const noisy = await outcome('noisy');
  expect(noisy).toMatchObject({ result: { returned: 5 } });
  for (const { ms } of [quiet, loud, noisy]) expect(ms).toBeLessThan(6000);
});

verifies('tool.orphan', 'a tool that floods us leaves those behind that it started', async () => {
  const origin = trusted({ tool: sh('sleep 300 & echo $! > child; yes') });
  const tool = await execTools().open('tool', origin, { maxOutputBytes: 1000 });
  expect((await failure(tool(null, call()))).data).toEqual({ maxOutputBytes: 1000 });
  expect(await goes(await pidIn(join(origin.directory, 'child')))).toBe(true);
});

verifies('tool.orphan', 'listeners pile up on the process or on the signal of a long run', async () => {
  const origin = trusted({ tool: sh('echo 1') });
  const tool = await execTools().open('tool', origin, {});
  const before = process.listenerCount('exit');
  const { signal } = new AbortController();
  let held = 0;
  const counted = new Proxy(signal, {
    get(target, name) {
      if (name === 'addEventListener') held += 1;
      if (name === 'removeEventListener') held -= 1;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  await Promise.all(Array.from({ length: 6 }, async () => tool(null, call({ signal: counted }))));
  expect(held).toBe(0);
  expect(process.listenerCount('exit')).toBe(before);
});

verifies('tool.orphan', 'our process ends and its tools go on', async () => {
  const origin = trusted({ tool: sh('sleep 300 & echo $! > child; echo $$ > pid; wait') });
  for (const [n, way] of ['process.exit(3)', 'throw new Error("uncaught")'].entries()) {
    const host = join(origin.directory, `host${n}.mjs`);
    const text = `
      import { execTools } from ${JSON.stringify(built)};
      const tool = await execTools().open('tool', { directory: ${JSON.stringify(origin.directory)}, trusted: true }, {});
      const call = { callId: 'c', idempotencyKey: 'k', signal: new AbortController().signal, config: {} };
      void tool(null, call);
      process.stdin.once('data', () => { ${way}; });`;
    writeFileSync(host, text);
    const child = spawn(process.execPath, [host], { stdio: ['pipe', 'ignore', 'ignore'] });
    const exit = once(child, 'exit');
    const pids = [await pidIn(join(origin.directory, 'pid')), await pidIn(join(origin.directory, 'child'))];
    expect(pids.map(runs)).toEqual([true, true]);
    child.stdin.write('go');
    await exit;
    for (const pid of pids) expect(await goes(pid)).toBe(true);
    for (const name of ['pid', 'child']) writeFileSync(join(origin.directory, name), '');
  }
});
