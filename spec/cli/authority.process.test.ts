// A hostile cloned project cannot replace the packages of Rondo.

import { expect } from 'vitest';
import { hello } from '../support/cli-project.js';
import { inLanes } from '../support/lanes.js';
import { verifies } from '../verifies.js';
import { Clone } from './clone.js';

verifies('authority.verbs', 'packages of the project never replace those of Rondo', async () => {
  const clone = new Clone();
  const asks = {
    ...hello,
    id: 'asks',
    backend: { id: 'openai-compatible', model: 'm', options: { baseURL: 'http://127.0.0.1:1/v1' } },
  };
  clone.write('loops/asks.json', asks);
  clone.write('loops/table.toml', 'kind = "tool"\n');
  const asking = ['run', 'asks', '--input', '{"name": "Ada"}', '--reach', '127.0.0.1:1'];
  const lines = [asking, [...asking, '--store', 'memory:'], ['check']];
  await inLanes(lines, (line) => clone.runProcess(line));
  expect(clone.executed).toBe(false);
});
