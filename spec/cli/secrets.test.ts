// A secret that an endpoint echoes appears neither in the output nor in the files of the store.

import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { Project, schemas } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const TOKEN = 'sk-l1ve/8a7f+3c5e9b';

verifies(
  'secret.echo',
  'neither the output nor the journal contains an echoed header, in success and failure',
  async () => {
    let status = 200;
    const server = createServer(({ headers }, response) => {
      const { authorization = '' } = headers;
      const token = authorization.replace('Bearer ', '');
      const echo = { authorization, token, url: encodeURIComponent(token), json: JSON.stringify({ token }) };
      response.writeHead(status).end(JSON.stringify(echo));
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const config = { headersFromEnv: { Authorization: 'STOCK' } };
    const tool = { implementation: `http:${url}`, config, safety: 'idempotent' };
    const project = new Project({
      ask: { id: 'ask', name: 'Ask', version: '1.0.0', kind: 'tool', ...schemas(), tool },
    });
    const env = { STOCK: `Bearer ${TOKEN}` };
    for (const [httpStatus, code] of [
      [200, 0],
      [401, 1],
    ] as const) {
      status = httpStatus;
      const args = ['--input', '{}', '--session', `s${httpStatus}`, '--trust', 'loops', '--json'];
      const ended = await project.run(['run', 'ask', ...args], { env });
      expect(ended.code).toBe(code);
      expect(ended.stdout).toContain('[withheld]');
      expect(ended.stdout + ended.stderr).not.toMatch(/l1ve|3c5e9b/);
      const events = await project.run(['events', `s${httpStatus}`]);
      expect(events.stdout + events.stderr).not.toMatch(/l1ve|3c5e9b/);
    }
    const files = readdirSync(project.path('.rondo')).filter((name) => name.includes('journal'));
    expect(files.length).toBeGreaterThan(0);
    for (const name of files) expect(readFileSync(project.path(`.rondo/${name}`), 'latin1')).not.toMatch(/l1ve|3c5e9b/);
  },
);
