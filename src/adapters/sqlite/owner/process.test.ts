/** What is known of a process by its pid and its start. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished } from 'vitest';
import { verifies } from '../../../../spec/verifies.js';
import { processStateOf, thisProcess } from './process.js';

const PRINT =
  "process.stdout.write(require('node:fs').readFileSync('/proc/self/stat','latin1').split(') ')[1].split(' ')[19]); setInterval(() => {}, 1000)";

/** A child process with its start, as its owner record would name it. */
async function child() {
  const started = spawn(process.execPath, ['-e', PRINT], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void started.kill('SIGKILL'));
  const [ticks] = await once(started.stdout, 'data');
  const [boot, namespace] = thisProcess().start.split(' ');
  return { started, id: { pid: started.pid ?? 0, start: `${boot} ${namespace} ${ticks}` } };
}

verifies('sqlite.owner', 'a process is known by its pid and start: running, stopped, gone', async () => {
  const { started, id } = await child();
  expect(processStateOf(thisProcess())).toBe('running');
  expect(processStateOf(id)).toBe('running');
  started.kill('SIGSTOP');
  await expect.poll(() => processStateOf(id)).toBe('stopped');
  started.kill('SIGCONT');
  await expect.poll(() => processStateOf(id)).toBe('running');
  started.kill('SIGKILL');
  // Until its parent has collected it, the system keeps a killed process as a zombie.
  await expect.poll(() => processStateOf(id)).toBe('gone');
});

verifies('sqlite.owner', 'another process that got the same pid is not taken for it', async () => {
  const { pid, start } = thisProcess();
  const [boot = '', namespace = '', ticks = ''] = start.split(' ');
  expect(processStateOf({ pid, start: `${boot} ${namespace} ${Number(ticks) + 1}` })).toBe('gone');
  expect(processStateOf({ pid, start: `another-boot ${namespace} ${ticks}` })).toBe('gone');
  expect(processStateOf({ pid, start: `${boot} pid:[1] ${ticks}` })).toBe('unknown');
  expect(processStateOf({ pid: 2 ** 30, start })).toBe('gone');
});
