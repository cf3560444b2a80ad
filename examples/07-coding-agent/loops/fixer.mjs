/**
 * A coding agent: a model, tools that are confined to one project, and nothing else. Tools that only read run at once; a
 * change of a file and a command are asked about, because that is how the toolbox makes them.
 */
import { fileURLToPath } from 'node:url';
import { defineAgent } from 'rondo';
import { toolbox } from 'rondo/toolbox';

// The project to work on. Nothing outside of it can be read or changed with these tools.
const { PROJECT = '.', SANDBOX } = process.env;

const { list_files, view_file, edit_file, run_command } = toolbox({
  roots: [PROJECT],
  // Commands run in a sandbox or not at all; who has none and wants to go on without says SANDBOX=preferred.
  commands: { sandbox: SANDBOX === 'preferred' ? 'preferred' : 'required', timeoutMs: 60_000 },
});

export const fixer = defineAgent({
  id: 'fixer',
  description: 'Makes the tests of a small project pass.',
  // A script in place of a model. A real one: model: { id: 'anthropic', model: 'claude-sonnet-4-5' }.
  model: { id: 'scripted', model: fileURLToPath(new URL('fixer.script.json', import.meta.url)) },
  instructions: 'You mend projects. Look first, run the tests, change as little as you can, and run the tests again.',
  tools: [list_files, view_file, edit_file, run_command],
  maxRounds: 10,
});
