/**
 * A coding agent: a model with tools that are confined to one project. By default, the tools of the toolbox that only
 * read need no approval; those that change a file or run a command need one.
 */
import { fileURLToPath } from 'node:url';
import { defineAgent } from 'rondo';
import { toolbox } from 'rondo/toolbox';

// The project to work on. The file tools cannot read or change anything outside of it.
const { PROJECT = '.', SANDBOX } = process.env;

const { list_files, view_file, edit_file, run_command } = toolbox({
  roots: [PROJECT],
  // Commands run only in a sandbox. SANDBOX=preferred allows them without one where no sandbox is available.
  commands: { sandbox: SANDBOX === 'preferred' ? 'preferred' : 'required', timeoutMs: 60_000 },
});

export const fixer = defineAgent({
  id: 'fixer',
  description: 'Makes the tests of a small project pass.',
  // A scripted model. A real one: model: { id: 'anthropic', model: 'claude-sonnet-4-5' }.
  model: { id: 'scripted', model: fileURLToPath(new URL('fixer.script.json', import.meta.url)) },
  instructions: 'You mend projects. Look first, run the tests, change as little as you can, and run the tests again.',
  tools: [list_files, view_file, edit_file, run_command],
  maxRounds: 10,
});
