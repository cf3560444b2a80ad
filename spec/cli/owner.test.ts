// Several processes on one store: verbs while another process runs a slow tool, is stopped or was killed.

import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import type { TurnStatus } from '../../src/protocol/index.js';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const RECORD = '.rondo/journal.db.owner';

verifies('cli.owner', 'a planted owner record is not trusted, and its socket receives nothing', async () => {
  const project = new Project();
  await project.run(['run', 'echo']);
  let received = '';
  const plantedServer = createServer((socket) => {
    socket.on('data', (data) => {
      received += data;
    });
  });
  plantedServer.listen(project.path('planted.sock'));
  onTestFinished(() => void plantedServer.close());
  await once(plantedServer, 'listening');
  const planted = { pid: process.pid, start: '1', secret: 'ab'.repeat(32), directory: '1:1:1' };
  for (const socket of ['beside', project.path('planted.sock'), 5]) {
    project.write(RECORD, { ...planted, socket });
    const { runs } = await project.json<{ runs: TurnStatus[] }>(['runs']);
    expect(runs).toHaveLength(1);
  }
  project.write(RECORD, 'not JSON at all');
  expect((await project.run(['run', 'echo'])).code).toBe(0);
  expect(received).toBe('');
});
