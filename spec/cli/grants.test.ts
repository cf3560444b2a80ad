// Grants with prices from the command line.

import { expect } from 'vitest';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const prompt = (backend: object): object => ({
  ...{ id: 'ask', name: 'ask', version: '1.0.0', kind: 'prompt', inputSchema: true, outputSchema: true },
  prompt: { template: 'Say something about lamps.' },
  backend,
});

const LAB = `[backends.lab]
kind = "openai-compatible"
baseURL = "http://127.0.0.1:9/v1"
`;
const PRICES = ['mock/m', 'lab/m']
  .map((name) => `[prices."${name}"]\ninputPerMillion = 1000000\noutputPerMillion = 1000000\n`)
  .join('');

function projectWith(backend: object, costMicros: number): Project {
  const project = new Project({});
  project.write('loops/ask.json', JSON.stringify(prompt(backend)));
  project.write('rondo.toml', `${PRICES}${LAB}`);
  project.write('grant.json', JSON.stringify({ allowedTools: [], limits: { costMicros } }));
  return project;
}

const run = (project: Project) => project.run(['run', 'ask', '--grant', 'grant.json', '--json']);

verifies('grant.prices', 'rondo run --grant limits the cost of a model by the prices in rondo.toml', async () => {
  const affordable = await run(projectWith({ id: 'mock', model: 'm' }, 1_000_000));
  expect(JSON.parse(affordable.stdout)).toMatchObject({ status: 'ok' });
  const stopped = await run(projectWith({ id: 'mock', model: 'm' }, 1));
  expect(JSON.parse(stopped.stdout)).toMatchObject({
    status: 'stopped',
    reason: expect.stringContaining('costMicros'),
  });
});

verifies('grant.prices', 'an untrusted rondo.toml sets no price for a model that leaves the process', async () => {
  const project = projectWith({ id: 'lab', model: 'm' }, 1_000_000);
  const refused = await run(project);
  expect(JSON.parse(refused.stdout)).toMatchObject({ status: 'error', error: { code: 'TOOL_NOT_ADMITTED' } });
  expect(refused.stdout).toContain('rondo trust');
  project.trusted = true;
  // The server does not exist: the call was admitted and failed afterwards.
  expect(JSON.parse((await run(project)).stdout)).toMatchObject({ error: { code: 'BACKEND_FAILED' } });
});

verifies('grant.document', 'a grant file is strict JSON with one object, and a turn has one', async () => {
  const project = new Project({});
  project.write('loops/ask.json', JSON.stringify(prompt({ id: 'mock', model: 'm' })));
  project.write('good.json', '{"allowedTools": [], "limits": {}}');
  const bad: readonly (readonly [text: string, says: RegExp])[] = [
    ['{"allowedTools": [], "limits": {"turns": 0}, "limits": {}}', /grant\.json cannot be used: .*limits/],
    ['null', /grant\.json cannot be used: it does not contain an object/],
    ['[]', /grant\.json cannot be used: it does not contain an object/],
    ['{"allowedTools": []} x', /grant\.json cannot be used/],
  ];
  for (const [text, says] of bad) {
    project.write('grant.json', text);
    const refused = await project.run(['run', 'ask', '--grant', 'grant.json']);
    expect(refused.code, text).toBe(64);
    expect(refused.stderr).toMatch(says);
  }
  const twice = await project.run(['run', 'ask', '--grant', 'good.json', '--grant', 'good.json']);
  expect(twice.code).toBe(64);
  expect(twice.stderr).toMatch(/--grant can be given once/);
});
