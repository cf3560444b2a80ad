// Runs a state machine over the files of a folder, and checks what it did.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runExample } from '../run-example.mjs';

const config = fileURLToPath(new URL('rondo.toml', import.meta.url));
/** Its `rondo.toml` decides which code the verbs are, so the directory is trusted as a whole. */
const directory = dirname(config);

await runExample('A workflow: fix until the check passes', import.meta.url, async ({ rondo, loops, folder, check }) => {
  const project = ['--loops', loops, '--config', config, '--trust', directory];
  const notes = join(folder, 'notes');
  mkdirSync(notes);
  writeFileSync(join(notes, 'a list.md'), 'Milk \nEggs  \n');
  writeFileSync(join(notes, 'b.md'), 'Nothing to do\n');
  writeFileSync(join(notes, 'c.md'), 'Bread \n');

  check('the workflow is valid', (await rondo('check', ...project)).code === 0);
  const diagram = await rondo('show', 'tidy', '--mermaid', ...project);
  check('its diagram shows the way back', diagram.stdout.includes('s2 --> s1'));

  const input = JSON.stringify({ folder: notes });
  const { code, stdout } = await rondo('run', 'tidy', ...project, '--session', 'tidy', '--input', input);
  check('it ends when the check finds nothing', code === 0 && JSON.parse(stdout).errors?.length === 0);
  const texts = ['a list.md', 'b.md', 'c.md'].map((name) => readFileSync(join(notes, name), 'utf8'));
  check('the files are fixed', texts.join('') === 'Milk\nEggs\nNothing to do\nBread\n');

  const events = (await rondo('trace', 'tidy', '--json')).stdout.trim().split('\n');
  const chosen = events.map((event) => JSON.parse(event)).filter(({ type }) => type === 'rondo.plan.chose');
  const choices = chosen.map(({ payload }) => payload.choice).join(' ');
  check('each of the two files was fixed once', choices === 'fixing checking fixing checking done');

  const json = await rondo('plan', 'convert', join(loops, 'tidy.toml'));
  check('the same workflow can be written as JSON', JSON.parse(json.stdout).composite.plan.states.length === 2);
  const replayed = await rondo('replay', 'tidy', ...project);
  check('a replay takes the recorded steps', replayed.code === 0);
});
