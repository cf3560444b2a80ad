/** No process that an `exec:` tool starts outlives its call, and none can delay its end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, expect } from 'vitest';
import {
  builtToolsUrl,
  call,
  cleanUp,
  durationOf,
  failure,
  hasExited,
  isRunning,
  node,
  readPid,
  rejectionOf,
  sh,
  trusted,
} from '../../../spec/support/tools-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { execTools } from './index.js';

afterAll(cleanUp);

const reason = new Error('cancelled');

interface AbortedCall {
  readonly directory: string;
  readonly pids: readonly number[];
  readonly ms: number;
  readonly rejection: unknown;
}

/** Starts a script that writes its process id to `pid`, aborts it, and measures how long the call takes to end. */
async function abortRunning(script: string, config = {}): Promise<AbortedCall> {
  const origin = trusted({ tool: script });
  const tool = await execTools().open('tool', origin, config);
  const controller = new AbortController();
  const working = rejectionOf(tool(null, call({ signal: controller.signal })));
  const pids = [await readPid(join(origin.directory, 'pid'))];
  if (script.includes('> child')) pids.push(await readPid(join(origin.directory, 'child')));
  const from = performance.now();
  controller.abort(reason);
  return { rejection: await working, ms: performance.now() - from, pids, directory: origin.directory };
}

verifies('tool.orphan', 'an aborted tool is terminated', async () => {
  const result = await abortRunning(sh('echo $$ > pid; exec sleep 60'), { killGraceMs: 10_000 });
  expect(result.rejection).toBe(reason);
  expect(result.ms).toBeLessThan(5000);
  expect(result.pids.filter(isRunning)).toEqual([]);
});

verifies('tool.orphan', 'a tool that ignores SIGTERM is killed after the grace period', async () => {
  const ignoringSigterm = node(
    `process.on('SIGTERM', () => {}); require('fs').writeFileSync('pid', String(process.pid)); setInterval(() => {}, 1000)`,
  );
  const result = await abortRunning(ignoringSigterm);
  expect(result.rejection).toBe(reason);
  expect(result.ms).toBeGreaterThan(450);
  expect(result.ms).toBeLessThan(5000);
  expect(result.pids.filter(isRunning)).toEqual([]);
  const sooner = await abortRunning(ignoringSigterm, { killGraceMs: 0 });
  expect(sooner.rejection).toBe(reason);
  expect(sooner.pids.filter(isRunning)).toEqual([]);
});

verifies('tool.orphan', 'a tool can clean up on SIGTERM', async () => {
  const cleaningUp = sh(`trap 'echo cleaned > trace; exit 0' TERM; echo $$ > pid; while :; do sleep 0.02; done`);
  const result = await abortRunning(cleaningUp, { killGraceMs: 10_000 });
  expect(result.rejection).toBe(reason);
  expect(existsSync(join(result.directory, 'trace'))).toBe(true);
  expect(result.ms).toBeLessThan(5000);
});

verifies('tool.orphan', 'neither a suspended tool nor nested children survive an abort', async () => {
  const stopped = await abortRunning(sh('echo $$ > pid; kill -STOP $$'));
  expect(stopped.rejection).toBe(reason);
  expect(stopped.pids.filter(isRunning)).toEqual([]);
  const nested = await abortRunning(
    sh(`sh -c 'trap "" TERM; sh -c "echo \\$\\$ > child; exec sleep 60"; :' & echo $$ > pid; wait`),
  );
  expect(nested.rejection).toBe(reason);
  for (const pid of nested.pids) expect(await hasExited(pid)).toBe(true);
});

verifies('tool.orphan', 'a call that is aborted before it begins starts no process', async () => {
  const origin = trusted({ tool: sh('echo $$ > pid; echo 1') });
  const tool = await execTools().open('tool', origin, {});
  expect(await rejectionOf(tool(null, call({ signal: AbortSignal.abort(reason) })))).toBe(reason);
  await setTimeout(100);
  expect(existsSync(join(origin.directory, 'pid'))).toBe(false);
});

verifies(
  'tool.orphan',
  'none of 200 tools that exit before their child leaves it running',
  async () => {
    const origin = trusted({ tool: sh('sleep 300 >/dev/null 2>&1 </dev/null & echo $!') });
    const tool = await execTools().open('tool', origin, {});
    const pids: number[] = [];
    for (let i = 0; i < 25; i++) {
      const batch = await Promise.all(Array.from({ length: 8 }, async () => tool(null, call())));
      pids.push(...batch.map(Number));
    }
    expect(new Set(pids).size).toBe(200);
    for (const pid of pids) expect(await hasExited(pid)).toBe(true);
  },
  120_000,
);

verifies('tool.orphan', 'a child that keeps the pipes open does not delay a tool that has exited', async () => {
  const origin = trusted({ tool: sh('sleep 300 & echo $!'), bad: sh('sleep 300 & echo $! >&2; exit 1') });
  const tool = await execTools().open('tool', origin, {});
  const bad = await execTools().open('bad', origin, {});
  let pid = 0;
  const time = await durationOf(async () => {
    pid = Number(await tool(null, call()));
  });
  expect(time).toBeLessThan(5000);
  expect(await hasExited(pid)).toBe(true);
  expect(await hasExited(Number((await failure(bad(null, call()))).message))).toBe(true);
});

verifies('tool.orphan', 'a process that left the group and keeps the pipes open does not delay the call', async () => {
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
    const ms = await durationOf(async () => {
      result = await rejectionOf(tool(null, call()));
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

verifies('tool.orphan', 'a tool that prints too much is killed with its children', async () => {
  const origin = trusted({ tool: sh('sleep 300 & echo $! > child; yes') });
  const tool = await execTools().open('tool', origin, { maxOutputBytes: 1000 });
  expect((await failure(tool(null, call()))).data).toMatchObject({ maxOutputBytes: 1000 });
  expect(await hasExited(await readPid(join(origin.directory, 'child')))).toBe(true);
});

verifies('tool.orphan', 'calls leave no listeners on the process or on their signal', async () => {
  const origin = trusted({ tool: sh('echo 1') });
  const tool = await execTools().open('tool', origin, {});
  const before = process.listenerCount('exit');
  const { signal } = new AbortController();
  let listenerCount = 0;
  const countingSignal = new Proxy(signal, {
    get(target, name) {
      if (name === 'addEventListener') listenerCount += 1;
      if (name === 'removeEventListener') listenerCount -= 1;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  await Promise.all(Array.from({ length: 6 }, async () => tool(null, call({ signal: countingSignal }))));
  expect(listenerCount).toBe(0);
  expect(process.listenerCount('exit')).toBe(before);
});

verifies('tool.orphan', 'the tools of a host are killed when its process exits', async () => {
  const origin = trusted({ tool: sh('sleep 300 & echo $! > child; echo $$ > pid; wait') });
  for (const [index, exitCode] of ['process.exit(3)', 'throw new Error("uncaught")'].entries()) {
    const host = join(origin.directory, `host${index}.mjs`);
    const text = `
      import { execTools } from ${JSON.stringify(builtToolsUrl)};
      const tool = await execTools().open('tool', { directory: ${JSON.stringify(origin.directory)}, trusted: true }, {});
      const call = { callId: 'c', idempotencyKey: 'k', signal: new AbortController().signal, config: {} };
      void tool(null, call);
      process.stdin.once('data', () => { ${exitCode}; });`;
    writeFileSync(host, text);
    const child = spawn(process.execPath, [host], { stdio: ['pipe', 'ignore', 'ignore'] });
    const exit = once(child, 'exit');
    const pids = [await readPid(join(origin.directory, 'pid')), await readPid(join(origin.directory, 'child'))];
    expect(pids.map(isRunning)).toEqual([true, true]);
    child.stdin.write('go');
    await exit;
    for (const pid of pids) expect(await hasExited(pid)).toBe(true);
    for (const name of ['pid', 'child']) writeFileSync(join(origin.directory, name), '');
  }
});
