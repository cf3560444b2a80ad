// An agent mends a project whose test fails. It may look as it likes; what it wants to do, it has to ask for.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toolbox } from 'rondo/toolbox';
import { tell } from '../run-example.mjs';

await tell('A coding agent that fixes a failing test', import.meta.url, async ({ rondo, loops, folder, holds }) => {
  const desk = join(folder, 'desk');
  const project = join(desk, 'project');
  mkdirSync(desk);
  writeFileSync(join(desk, 'diary.txt'), 'Not for agents.\n');
  cpSync(new URL('project', import.meta.url), project, { recursive: true });
  process.env.PROJECT = project;
  process.env.SANDBOX = await sandboxIn(project);
  holds('no sandbox, no command, unless the operator says so', (await refusalIn(project)).includes('Nothing was run'));
  const before = filesIn(desk);
  holds('the test fails', passes(project) === false);

  const args = ['--loops', loops, '--trust', loops];
  const prompt = 'A test of this project fails. Please fix it.';
  const asked = await rondo('run', 'fixer', ...args, '--session', 'fix', '--input', JSON.stringify({ prompt }));
  holds('it looks without a question, and waits before it does anything: exit code 2', asked.code === 2);

  const approve = async () => {
    await rondo('approvals');
    const [{ id, tool, description }] = JSON.parse((await rondo('approvals', '--json')).stdout);
    const unchanged = changed(before, filesIn(desk)).join();
    const ended = await rondo('approve', id, '--as', 'ada', ...args);
    return { tool, description, unchanged, ended };
  };
  const tested = await approve();
  holds('it asks to run the tests', tested.tool === 'run_command' && tested.description.endsWith('node --test'));
  const edited = await approve();
  const line = '+  const sorted = [...numbers].sort((a, b) => a - b);';
  holds('it asks to change a file, and shows the diff', edited.description.includes(line));
  holds('until that is approved, nothing is changed', edited.unchanged === '');
  const { ended } = await approve();
  holds('it runs the tests again, and is done', ended.code === 0);

  holds('the test passes', passes(project));
  holds('one file is changed, and nothing around it', changed(before, filesIn(desk)).join() === 'project/math.mjs');
  await rondo('events', 'fix', '--text');
  const told = (await rondo('events', 'fix', '--json')).stdout
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text));
  const story = told.filter(({ type }) => type === 'tool-result').map(({ content }) => content);
  const [looking, doing] = [story.slice(0, 3), story.slice(3)].map(toolsOf);
  holds('the events tell that it looked', looking?.join() === 'list_files,view_file,view_file');
  holds('and what it did', doing?.join() === 'edit_file,run_command,run_command');
  const codes = story.flatMap(({ result }) => ('exitCode' in result ? [result.exitCode] : []));
  holds('the tests failed, then passed', codes.join() === '1,0');
  const replayed = await rondo('replay', 'fix', ...args);
  holds('and the code still does what the journal says it did', replayed.code === 0);
});

/** Runs something with the tool itself, as an agent would. @param {ReturnType<typeof toolbox>} tools */
async function run({ run_command }, command = 'true') {
  return run_command.withApproval('always_allow').execute({ command }, { toolCallId: 'try', messages: [] });
}

/** How commands run here: in the sandbox, or where it does not work, without, which is said. @param {string} root */
async function sandboxIn(root) {
  try {
    await run(toolbox({ roots: [root] }));
    return 'required';
  } catch (thrown) {
    console.log(
      `\n  ${/** @type {Error} */ (thrown).message}\n  So this story sets SANDBOX=preferred, and goes on without.\n`,
    );
    return 'preferred';
  }
}

/** What is said where there is no sandbox. @param {string} root */
async function refusalIn(root) {
  const tools = toolbox({ roots: [root], commands: { bubblewrap: '/nowhere/bwrap' } });
  return run(tools).then(
    () => 'It ran.',
    (/** @type {Error} */ { message }) => message,
  );
}

/** Whether the tests of a project pass. @param {string} cwd */
function passes(cwd) {
  return spawnSync(process.execPath, ['--test'], { cwd }).status === 0;
}

/** All files with what they hold. @param {string} folder @returns {Map<string, string>} */
function filesIn(folder) {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    found.map(({ parentPath, name }) => {
      const file = join(parentPath, name);
      return [file.slice(folder.length + 1), readFileSync(file, 'utf8')];
    }),
  );
}

/** @param {Map<string, string>} before @param {Map<string, string>} after */
function changed(before, after) {
  return [...new Set([...before.keys(), ...after.keys()])].filter((file) => before.get(file) !== after.get(file));
}

/** Those that ran, by name: of tools that run side by side, any may end first. @param {readonly { toolName: string }[]} results */
function toolsOf(results) {
  return results.map(({ toolName }) => toolName).sort();
}
