// Several processes on one store: verbs while another process runs a slow tool, is stopped or was killed.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync, unlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import type { TurnResult, TurnStatus } from '../../src/protocol/index.js';
import { Project, tool, until } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const DATABASE = '.rondo/journal.db';
const RECORD = `${DATABASE}.owner`;

/** Returns the pid of the process that owns the store. */
function ownerOf(project: Project): number {
  const { pid } = JSON.parse(project.read(RECORD)) as { pid: number };
  return pid;
}

verifies('cli.owner', 'a running turn can be listed, inspected and cancelled from another process', async () => {
  const project = new Project().withHoldTool();
  const { turn, ended, child } = await project.startHeld('go', ['--json']);
  expect(await project.json(['status', turn])).toMatchObject({ turnId: turn, status: 'running', pid: child.pid });
  const lines = (await project.run(['trace', turn, '--json'])).stdout.trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line).type)).toContain('call.tool.invoked');
  expect((await project.run(['trace', turn])).stdout).toContain('hold@1.0.0');
  expect(await project.json(['check'])).toMatchObject({ ok: true, inFlight: [{ turnId: turn, breaks: false }] });
  expect(await project.json(['replay', turn])).toMatchObject({ matches: true });
  expect((await project.run(['doctor'])).stdout).toContain(`process ${ownerOf(project)} owns it and responds`);
  const cancelled = await project.run(['cancel', turn, '--reason', 'enough', '--json']);
  expect(cancelled.code).toBe(0);
  expect(JSON.parse(cancelled.stdout)).toMatchObject({ turnId: turn, cancelled: true });
  const runner = await ended;
  expect(runner.code).toBe(1);
  expect(JSON.parse(runner.stdout)).toMatchObject({ turnId: turn, status: 'cancelled', error: { code: 'CANCELLED' } });
  expect(project.has(RECORD)).toBe(false);
  expect((await project.run(['cancel', turn])).code).toBe(1);
});

verifies('cli.owner', 'a second run starts at once, in parallel to the first', async () => {
  const project = new Project().withHoldTool();
  const { turn, ended } = await project.startHeld('go');
  const second = await project.run(['run', 'pair', '--input', '{"name": "Ada", "ms": 1}', '--json']);
  expect(second.code).toBe(0);
  const result = JSON.parse(second.stdout) as TurnResult;
  expect(result).toMatchObject({ status: 'ok', output: { waitedMs: 1 } });
  expect(result.trace.map(({ type }) => type)).toEqual(expect.arrayContaining(['child.started', 'call.completed']));
  const { runs } = await project.json<{ runs: TurnStatus[] }>(['runs']);
  expect(runs.map(({ status }) => status)).toEqual(['ok', 'running']);
  const failed = await project.run(['run', 'fail', '--input', '{"message": "no"}', '--json']);
  expect(failed.code).toBe(1);
  expect(JSON.parse(failed.stdout)).toMatchObject({ error: { code: 'TOOL_FAILED', message: 'no' } });
  const unknown = await project.run(['status', 'nothing', '--json']);
  expect(unknown.code).toBe(1);
  expect(JSON.parse(unknown.stdout)).toMatchObject({ error: { code: 'TURN_NOT_FOUND' } });
  expect(await project.json(['diff', result.turnId, turn])).toMatchObject({ same: false });
  project.release('go');
  expect((await ended).code).toBe(0);
});

verifies('cli.owner', 'a second run uses its own definitions, trust and environment', async () => {
  const project = new Project().withHoldTool();
  await project.startHeld('go');
  project.write('loops/late.json', tool('late', 'echo'));
  expect(await project.json(['run', 'late'])).toMatchObject({ status: 'ok' });
  // The owner of the store trusts the project; other processes do not inherit that trust.
  project.trusted = false;
  const { code, stdout } = await project.run(['run', 'hold', '--input', '{"until": "go"}', '--json']);
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'DEFINITION_INVALID' } });
});

for (const event of ['ends', 'is killed'] as const) {
  verifies('cli.owner', `when the owner ${event}, the run of another process continues`, async () => {
    const project = new Project().withHoldTool();
    const owner = await project.startHeld('first', ['--json']);
    const other = await project.startHeld('second', ['--json']);
    expect(ownerOf(project)).toBe(owner.child.pid);
    if (event === 'ends') project.release('first');
    else owner.child.kill('SIGKILL');
    expect((await owner.ended).code).toBe(event === 'ends' ? 0 : null);
    await until(() => project.has(RECORD) && ownerOf(project) === other.child.pid);
    expect(await project.json(['status', other.turn])).toMatchObject({ status: 'running' });
    project.release('second');
    const { code, stdout } = await other.ended;
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ status: 'ok', output: { held: 'second' } });
    expect(project.has(RECORD)).toBe(false);
  });
}

verifies('cli.owner', 'an owner whose reader closed the pipe ends without affecting others', async () => {
  const project = new Project().withHoldTool();
  const owner = await project.startHeld('first');
  const other = await project.startHeld('second', ['--json']);
  owner.child.stdout.destroy();
  owner.child.stderr.destroy();
  project.release('first');
  await once(owner.child, 'exit');
  project.release('second');
  expect(JSON.parse((await other.ended).stdout)).toMatchObject({ status: 'ok', output: { held: 'second' } });
});

verifies('cli.owner', 'a stopped owner is reported with its pid and the command that continues it', async () => {
  const project = new Project().withHoldTool();
  const { child, ended } = await project.startHeld('go');
  child.kill('SIGSTOP');
  const { code, stdout, stderr } = await project.run(['runs', '--json']);
  expect(code).toBe(70);
  expect(JSON.parse(stdout)).toMatchObject({
    error: { code: 'STORE_OWNED', details: { pid: child.pid, state: 'stopped' } },
  });
  expect(stderr).toContain(`kill -CONT ${child.pid}`);
  child.kill('SIGCONT');
  project.release('go');
  expect((await ended).code).toBe(0);
});

verifies('cli.owner', 'a fault of the store during a turn names the turn, in text and in JSON', async () => {
  const project = new Project().withHoldTool();
  const { child, ended, turn } = await project.startHeld('go', ['--json']);
  for (const suffix of ['', '-wal', '-shm']) unlinkSync(project.path(DATABASE + suffix));
  project.release('go');
  const { code, stdout, stderr } = await ended;
  expect(code).toBe(70);
  expect(JSON.parse(stdout)).toMatchObject({
    error: { code: 'STORE_MISSING', details: { turnId: turn, sessionId: 'go' } },
  });
  expect(stderr).toContain(`rondo resume ${turn}`);
  expect(child.exitCode).toBe(70);
});

verifies('cli.owner', 'a killed run can be resumed, and its leftover files block nothing', async () => {
  const project = new Project().withHoldTool();
  const { turn, child, ended } = await project.startHeld('go');
  child.kill('SIGKILL');
  await ended;
  expect(project.has(RECORD)).toBe(true);
  expect(await project.json(['status', turn])).toMatchObject({ status: 'interrupted' });
  expect((await project.run(['status', turn])).stdout).toContain(`rondo resume ${turn}`);
  project.release('go');
  const resumed = await project.run(['resume', turn, '--json']);
  expect(resumed.code).toBe(0);
  expect(JSON.parse(resumed.stdout)).toMatchObject({ turnId: turn, status: 'ok', output: { held: 'go' } });
});

/** Starts a process that opens the store through the library, and then waits or blocks its event loop. */
async function startLibraryProcess(
  project: Project,
  mode: 'wait' | 'block',
): Promise<{ readonly pid: number; kill(): void }> {
  const program = fileURLToPath(new URL('fixtures/holder.mjs', import.meta.url));
  const child = spawn(process.execPath, [program, project.path(DATABASE), mode], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const kill = (): void => void child.kill('SIGKILL');
  onTestFinished(kill);
  await once(child.stdout, 'data');
  return { pid: child.pid ?? 0, kill };
}

verifies('cli.owner', 'a program that uses the library serves the store as a verb does', async () => {
  const project = new Project();
  await project.run(['run', 'echo']);
  const { pid, kill } = await startLibraryProcess(project, 'wait');
  expect(ownerOf(project)).toBe(pid);
  const { runs } = await project.json<{ runs: TurnStatus[] }>(['runs']);
  expect(runs).toHaveLength(1);
  expect(await project.json(['run', 'echo', '--input', '{"n": 1}'])).toMatchObject({ status: 'ok' });
  expect(await project.json(['approvals'])).toEqual({ approvals: [] });
  expect((await project.run(['doctor'])).stdout).toContain(`process ${pid} owns it and responds`);
  kill();
  expect((await project.json<{ runs: TurnStatus[] }>(['runs'])).runs).toHaveLength(2);
});

verifies('cli.owner', 'a blocked owner is reported within ten seconds, and not replaced', async () => {
  const project = new Project();
  await project.run(['run', 'echo']);
  const { pid } = await startLibraryProcess(project, 'block');
  const before = performance.now();
  const [runs, doctor] = await Promise.all([project.run(['runs', '--json']), project.run(['doctor'])]);
  expect(performance.now() - before).toBeLessThan(15_000);
  expect(runs.code).toBe(70);
  expect(JSON.parse(runs.stdout)).toMatchObject({ error: { code: 'STORE_OWNED', details: { pid, state: 'running' } } });
  expect(runs.stderr).toContain(`kill ${pid}`);
  expect(doctor.stdout).toMatch(/^warn {2}store/m);
});

verifies('cli.owner', 'the files of a store are private to its user, whatever the umask', async () => {
  const project = new Project().withHoldTool();
  const before = process.umask(0o000);
  onTestFinished(() => void process.umask(before));
  await project.startHeld('go');
  expect(statSync(project.path('.rondo')).mode & 0o777).toBe(0o700);
  for (const suffix of ['', '-wal', '-shm', '.owner', '.lock', '.sock']) {
    expect(statSync(project.path(DATABASE + suffix)).mode & 0o777, suffix).toBe(0o600);
  }
});
