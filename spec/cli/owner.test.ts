// Two processes and one store: what a verb does while another process is inside a slow tool, or was killed there.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import type { TurnResult, TurnStatus } from '../../src/protocol/index.js';
import { verifies } from '../verifies.js';
import { Project, tool, until } from './stage.js';

interface Note {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
  readonly store: string;
}

const noteOf = (project: Project): Note => JSON.parse(project.read('.rondo/owner.json')) as Note;

verifies('cli.owner', 'while a turn runs nobody can look at it', async () => {
  const project = new Project().holding();
  const { turn, ended } = await project.held('go', ['--json']);
  expect(await project.json(['status', turn])).toMatchObject({ turnId: turn, status: 'running' });
  const lines = (await project.run(['trace', turn, '--json'])).stdout.trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line).type)).toContain('call.tool.invoked');
  expect((await project.run(['trace', turn])).stdout).toContain('hold@1.0.0');
  expect(await project.json(['check'])).toMatchObject({ ok: true, inFlight: [{ turnId: turn, breaks: false }] });
  expect(await project.json(['replay', turn])).toMatchObject({ matches: true });
  expect((await project.run(['doctor'])).stdout).toContain(`process ${noteOf(project).pid} has it, and answers`);
  const cancelled = await project.run(['cancel', turn, '--reason', 'enough', '--json']);
  expect(cancelled.code).toBe(0);
  expect(JSON.parse(cancelled.stdout)).toMatchObject({ turnId: turn, cancelled: true });
  const owner = await ended;
  expect(owner.code).toBe(1);
  expect(JSON.parse(owner.stdout)).toMatchObject({ turnId: turn, status: 'error', error: { code: 'CANCELLED' } });
  expect(project.has('.rondo/owner.json')).toBe(false);
  expect((await project.run(['cancel', turn])).code).toBe(1);
});

verifies('cli.owner', 'a second run has to wait until the first has ended', async () => {
  const project = new Project().holding();
  const { turn, ended } = await project.held('go');
  const second = await project.run(['run', 'pair', '--input', '{"name": "Ada", "ms": 1}', '--json']);
  expect(second.code).toBe(0);
  const result = JSON.parse(second.stdout) as TurnResult;
  expect(result).toMatchObject({ status: 'ok', output: { waitedMs: 1 } });
  expect(result.trace.map(({ type }) => type)).toEqual(expect.arrayContaining(['child.started', 'call.completed']));
  expect(second.stderr).toContain(`belongs to process ${noteOf(project).pid}`);
  const { runs } = await project.json<{ runs: TurnStatus[] }>(['runs']);
  expect(runs.map(({ status }) => status)).toEqual(['ok', 'running']);
  const failed = await project.run(['run', 'fail', '--input', '{"message": "no"}', '--json']);
  expect(failed.code).toBe(1);
  expect(JSON.parse(failed.stdout)).toMatchObject({ error: { code: 'TOOL_FAILED', message: 'no' } });
  const lost = await project.run(['status', 'nothing', '--json']);
  expect(lost.code).toBe(1);
  expect(JSON.parse(lost.stdout)).toMatchObject({ error: { code: 'TURN_NOT_FOUND' } });
  expect(await project.json(['diff', result.turnId, turn])).toMatchObject({ same: false });
  project.release('go');
  expect((await ended).code).toBe(0);
});

verifies('cli.owner', 'a loop that the owner does not know fails without a reason', async () => {
  const project = new Project().holding();
  await project.held('go');
  project.write('loops/late.json', tool('late', 'echo'));
  const { code, stderr } = await project.run(['run', 'late']);
  expect(code).toBe(1);
  expect(stderr).toContain('this loop is not among them');
});

verifies('cli.owner', 'the owner ends and takes the run of another with it', async () => {
  const project = new Project().holding();
  const owner = await project.held('first', ['--json']);
  const guest = await project.held('second', ['--json']);
  project.release('first');
  expect(await until(() => /it ends with theirs/.test(owner.said().stderr))).toBe(true);
  expect(JSON.parse(owner.said().stdout)).toMatchObject({ status: 'ok', output: { held: 'first' } });
  expect(await project.json(['status', guest.turn])).toMatchObject({ status: 'running' });
  project.release('second');
  const [first, second] = await Promise.all([owner.ended, guest.ended]);
  expect(first.code).toBe(0);
  expect(JSON.parse(second.stdout)).toMatchObject({ status: 'ok', output: { held: 'second' } });
  expect(project.has('.rondo/owner.json')).toBe(false);
});

verifies('cli.owner', 'a guest whose owner dies is told nothing', async () => {
  const project = new Project().holding();
  const owner = await project.held('first');
  const guest = await project.held('second', ['--json']);
  owner.child.kill('SIGKILL');
  const { code, stdout, stderr } = await guest.ended;
  expect(code).toBe(70);
  expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'STORE_FAILED' } });
  expect(stderr).toContain(`Go on with: rondo resume ${guest.turn}`);
});

verifies('cli.owner', 'a guest that is interrupted stops the run, or says that it did', async () => {
  const project = new Project().holding();
  const owner = await project.held('first');
  const guest = await project.held('second');
  guest.child.kill('SIGINT');
  const { code, stderr } = await guest.ended;
  expect(code).toBe(130);
  expect(stderr).toContain(`goes on in process ${owner.child.pid}`);
  project.release('second');
  const status = await until(async () => {
    const found = await project.json<TurnStatus>(['status', guest.turn]);
    return found.status === 'running' ? undefined : found.status;
  });
  expect(status).toBe('ok');
});

verifies('cli.owner', 'a killed run is lost, or a note that it left blocks the store', async () => {
  const project = new Project().holding();
  const { turn, child, ended } = await project.held('go');
  child.kill('SIGKILL');
  await ended;
  expect(project.has('.rondo/owner.json')).toBe(true);
  expect(await project.json(['status', turn])).toMatchObject({ status: 'interrupted' });
  expect((await project.run(['status', turn])).stdout).toContain(`rondo resume ${turn}`);
  project.release('go');
  const resumed = await project.run(['resume', turn, '--json']);
  expect(resumed.code).toBe(0);
  expect(JSON.parse(resumed.stdout)).toMatchObject({ turnId: turn, status: 'ok', output: { held: 'go' } });
});

verifies('cli.owner', 'all that was interrupted must be resumed by hand', async () => {
  const project = new Project().holding();
  const owner = await project.held('first');
  const guest = await project.held('second');
  owner.child.kill('SIGKILL');
  await Promise.all([owner.ended, guest.ended]);
  project.release('first');
  project.release('second');
  const { runs } = await project.json<{ runs: TurnResult[] }>(['resume', '--all']);
  expect(runs.map(({ status }) => status)).toEqual(['ok', 'ok']);
  const again = await project.run(['resume', '--all']);
  expect(again).toMatchObject({ code: 0, stdout: '' });
  expect(again.stderr).toContain('There is nothing to go on with');
  expect((await project.run(['resume'])).code).toBe(64);
  expect((await project.run(['resume', 'first', '--all'])).code).toBe(64);
});

/** The turn of a run that was killed inside a tool. */
async function killed(project: Project, name: string): Promise<string> {
  const { turn, child, ended } = await project.held(name);
  child.kill('SIGKILL');
  await ended;
  return turn;
}

verifies('cli.owner', 'an effect that may have happened is done again without a word', async () => {
  const project = new Project().holding('once');
  const turn = await killed(project, 'one');
  const paused = await project.run(['resume', turn, '--json']);
  expect(paused.code).toBe(2);
  const { pending } = JSON.parse(paused.stdout) as TurnResult;
  expect(pending).toMatchObject([{ kind: 'doubt', key: expect.stringContaining(`${turn}/`) }]);
  expect(paused.stderr).toContain(`rondo resolve ${pending?.[0]?.key} --retry`);
  expect(await project.json(['status', turn])).toMatchObject({ status: 'paused', pending: [{ kind: 'doubt' }] });
  expect((await project.run(['resume', '--all'])).code).toBe(2);
});

verifies('cli.owner', 'nobody can say what became of an effect', async () => {
  const project = new Project().holding('once');
  const one = await killed(project, 'one');
  const supplied = await project.run(['resolve', one, '--result', '{"held": "long"}', '--as', 'ada', '--json']);
  expect(supplied.code).toBe(0);
  expect(JSON.parse(supplied.stdout)).toMatchObject({ status: 'ok', output: { held: 'long' } });
  const two = await killed(project, 'second');
  const failed = await project.run(['resolve', two.slice(0, 10), '--fail', '--json']);
  expect(failed.code).toBe(1);
  expect(JSON.parse(failed.stdout)).toMatchObject({ error: { code: 'EFFECT_IN_DOUBT' } });
  const three = await killed(project, 'third');
  const key = (await project.json<TurnStatus>(['status', three])).pending?.[0]?.key ?? '';
  project.release('third');
  expect(await project.json(['resolve', key, '--retry'])).toMatchObject({ status: 'ok', output: { held: 'third' } });
  expect((await project.run(['resolve', key, '--retry'])).code).toBe(1);
  expect((await project.run(['resolve', key])).code).toBe(64);
  expect((await project.run(['resolve', key, '--retry', '--fail'])).code).toBe(64);
  expect((await project.run(['resolve', key, '--result', '{'])).code).toBe(64);
  expect((await project.run(['resolve', three, '--retry'])).code).toBe(64);
});

verifies('cli.owner', 'Ctrl-C leaves no way to go on', async () => {
  const project = new Project().holding();
  const { turn, child, ended } = await project.held('go');
  child.kill('SIGINT');
  const { code, signal, stderr } = await ended;
  expect({ code, signal }).toEqual({ code: 130, signal: null });
  expect(stderr).toContain(`rondo resume ${turn}`);
  expect(project.has('.rondo/owner.json')).toBe(false);
  project.release('go');
  expect(await project.json(['resume', turn])).toMatchObject({ status: 'ok' });
});

verifies('cli.owner', 'a note whose process died and whose number is somebody else’s blocks the store', async () => {
  const project = new Project();
  const stranger = createServer((_, response) => response.end('{"result": "nonsense"}\n'));
  stranger.listen(0, '127.0.0.1');
  onTestFinished(() => void stranger.close());
  await once(stranger, 'listening');
  const { port } = stranger.address() as AddressInfo;
  await project.run(['run', 'echo']);
  const store = project.path('.rondo/journal.db');
  const stale = { token: 'x', pid: process.pid, store };
  for (const url of [`http://127.0.0.1:${port}`, 'http://127.0.0.1:1', 'http://example.com', 5]) {
    project.write('.rondo/owner.json', { ...stale, url });
    const { runs } = await project.json<{ runs: TurnStatus[] }>(['runs']);
    expect(runs).toHaveLength(1);
  }
  project.write('.rondo/owner.json', 'not JSON at all');
  expect((await project.run(['run', 'echo'])).code).toBe(0);
});

verifies('cli.owner', 'a process that holds the store and does not listen is an internal error', async () => {
  const project = new Project();
  await project.run(['run', 'echo']);
  const holder = fileURLToPath(new URL('fixtures/holder.mjs', import.meta.url));
  const child = spawn(process.execPath, [holder, project.path('.rondo/journal.db')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  const { code, stdout, stderr } = await project.run(['runs', '--json']);
  expect(code).toBe(70);
  expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'STORE_OWNED' } });
  expect(stderr).toContain(`process ${child.pid}`);
  expect((await project.run(['doctor'])).stdout).toMatch(/^warn {2}store/m);
  globalThis.setTimeout(() => child.kill('SIGKILL'), 600);
  expect((await project.run(['runs'])).code).toBe(0);
});

interface Reply {
  readonly status: number | undefined;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
}

async function call(url: string, headers: NodeJS.Dict<string>, body: string | Buffer, method = 'POST'): Promise<Reply> {
  const asking = request(url, { method, headers: { ...headers } });
  asking.on('error', () => undefined);
  asking.end(body);
  const [response] = await once(asking, 'response');
  let text = '';
  for await (const piece of response.setEncoding('utf8')) text += piece;
  return { status: response.statusCode, headers: response.headers, body: text };
}

verifies('cli.owner', 'a page in a browser or another user drives the runs of this one', async () => {
  const project = new Project().holding();
  await project.held('go');
  const { url, token } = noteOf(project);
  expect(statSync(project.path('.rondo/owner.json')).mode & 0o777).toBe(0o600);
  expect(token).toMatch(/^[0-9a-f]{64}$/);
  const address = `${url}/call`;
  const ours = { authorization: `Bearer ${token}` };
  const asks = JSON.stringify({ verb: 'turns', args: {} });
  const good = await call(address, ours, asks);
  expect(good.status).toBe(200);
  expect(JSON.parse(good.body)).toMatchObject({ result: [{ status: 'running' }] });
  expect(Object.keys(good.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  const statusOf = async (headers: NodeJS.Dict<string>, body: string | Buffer = asks): Promise<number | undefined> =>
    (await call(address, headers, body)).status;
  expect(await statusOf({})).toBe(401);
  expect(await statusOf({ authorization: `Bearer ${token.slice(1)}0` })).toBe(401);
  expect(await statusOf({ ...ours, origin: 'http://localhost' })).toBe(403);
  expect(await statusOf({ ...ours, host: 'evil.example' })).toBe(403);
  expect(await statusOf(ours, '{"verb": "shutdown"}')).toBe(404);
  expect(await statusOf(ours, '{"verb": "constructor"}')).toBe(404);
  expect(await statusOf(ours, 'not JSON')).toBe(400);
  expect(await statusOf(ours, 'null')).toBe(404);
  expect((await call(`${url}/other`, ours, asks)).status).toBe(404);
  expect((await call(address, ours, '', 'GET')).status).toBe(405);
  const wrong = await call(address, ours, JSON.stringify({ verb: 'status', args: { id: 5 } }));
  expect(JSON.parse(wrong.body)).toMatchObject({ error: { family: 'usage' } });
  expect((await project.run(['runs'])).code).toBe(0);
});

verifies('cli.owner', 'a request without end fills the memory of the owner', async () => {
  const project = new Project().holding();
  await project.held('go');
  const { url, token } = noteOf(project);
  const { status } = await call(
    `${url}/call`,
    { authorization: `Bearer ${token}` },
    Buffer.alloc(66 * 1024 * 1024, 32),
  );
  expect(status).toBe(413);
  await setTimeout(100);
  expect((await project.run(['runs'])).code).toBe(0);
});
