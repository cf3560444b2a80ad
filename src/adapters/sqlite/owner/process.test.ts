/** The identity and the state of a process, by its pid and its start. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished } from 'vitest';
import { verifies } from '../../../../spec/verifies.js';
import { processStateOf, thisProcess } from './process.js';

const PRINT =
  "process.stdout.write(require('node:fs').readFileSync('/proc/self/stat','latin1').split(') ')[1].split(' ')[19]); setInterval(() => {}, 1000)";

/** Starts a child process and returns it with the identity that its owner file would contain. */
async function startChild() {
  const child = spawn(process.execPath, ['-e', PRINT], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [ticks] = await once(child.stdout, 'data');
  const [boot, namespace] = thisProcess().start.split(' ');
  return { child, id: { pid: child.pid ?? 0, start: `${boot} ${namespace} ${ticks}` } };
}

verifies('sqlite.owner', 'the state of a process is running, stopped or gone', async () => {
  const { child, id } = await startChild();
  expect(processStateOf(thisProcess())).toBe('running');
  expect(processStateOf(id)).toBe('running');
  child.kill('SIGSTOP');
  await expect.poll(() => processStateOf(id)).toBe('stopped');
  child.kill('SIGCONT');
  await expect.poll(() => processStateOf(id)).toBe('running');
  child.kill('SIGKILL');
  // A killed process stays a zombie until its parent reaps it.
  await expect.poll(() => processStateOf(id)).toBe('gone');
});

verifies('sqlite.owner', 'another process with a reused pid is not mistaken for it', async () => {
  const { pid, start } = thisProcess();
  const [boot = '', namespace = '', ticks = ''] = start.split(' ');
  expect(processStateOf({ pid, start: `${boot} ${namespace} ${Number(ticks) + 1}` })).toBe('gone');
  expect(processStateOf({ pid, start: `another-boot ${namespace} ${ticks}` })).toBe('gone');
  expect(processStateOf({ pid, start: `${boot} pid:[1] ${ticks}` })).toBe('unknown');
  expect(processStateOf({ pid: 2 ** 30, start })).toBe('gone');
});
