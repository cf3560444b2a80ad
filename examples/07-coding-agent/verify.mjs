// Runs an agent that fixes a failing test. Reading needs no approval; every change and every command does.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toolbox } from 'rondo/toolbox';
import { runExample } from '../run-example.mjs';

await runExample('A coding agent: fix a failing test', import.meta.url, async ({ rondo, loops, folder, check }) => {
  const workspace = join(folder, 'workspace');
  const project = join(workspace, 'project');
  mkdirSync(workspace);
  writeFileSync(join(workspace, 'diary.txt'), 'Outside of the project.\n');
  cpSync(new URL('project', import.meta.url), project, { recursive: true });
  process.env.PROJECT = project;
  process.env.SANDBOX = await sandboxIn(project);
  check('without a sandbox, no command runs by default', (await refusalIn(project)).includes('Nothing was run'));
  const before = filesIn(workspace);
  check('a test fails', passes(project) === false);

  const args = ['--loops', loops, '--trust', loops];
  const prompt = 'A test of this project fails. Please fix it.';
  const paused = await rondo('run', 'fixer', ...args, '--session', 'fix', '--input', JSON.stringify({ prompt }));
  check('the agent reads files without approval, and pauses before its first command: exit code 2', paused.code === 2);

  const approve = async () => {
    await rondo('approvals');
    const [{ id, tool, description }] = JSON.parse((await rondo('approvals', '--json')).stdout).approvals;
    const changedBefore = changedFiles(before, filesIn(workspace)).join();
    const result = await rondo('approve', id, '--as', 'ada', ...args);
    return { tool, description, changedBefore, result };
  };
  const testRun = await approve();
  check(
    'the first approval is for the test run',
    testRun.tool.endsWith('run_command') && testRun.description.endsWith('node --test'),
  );
  const edit = await approve();
  const line = '+  const sorted = [...numbers].sort((a, b) => a - b);';
  check('the second approval is for the edit, and shows its diff', edit.description.includes(line));
  check('nothing is changed before the approval', edit.changedBefore === '');
  const { result } = await approve();
  check('the agent runs the tests again and ends', result.code === 0);

  check('the tests pass', passes(project));
  check('only one file is changed', changedFiles(before, filesIn(workspace)).join() === 'project/math.mjs');
  await rondo('events', 'fix', '--text');
  const events = (await rondo('events', 'fix', '--json')).stdout
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text));
  const toolResults = events.filter(({ type }) => type === 'tool-result').map(({ content }) => content);
  const [reads, changes] = [toolResults.slice(0, 3), toolResults.slice(3)].map(toolsOf);
  check('the events list the reads', reads?.join() === 'list_files,view_file,view_file');
  check('the events list the edit and both commands', changes?.join() === 'edit_file,run_command,run_command');
  const exitCodes = toolResults.flatMap(({ result }) => ('exitCode' in result ? [result.exitCode] : []));
  check('the first test run fails, the second passes', exitCodes.join() === '1,0');
  const replayed = await rondo('replay', 'fix', ...args);
  check('a replay takes the recorded steps', replayed.code === 0);
});

/** Runs a command with the tool, without approval. @param {ReturnType<typeof toolbox>} tools */
async function run({ run_command }, command = 'true') {
  return run_command.withApproval('always_allow').execute({ command }, { toolCallId: 'try', messages: [] });
}

/** Returns the value for SANDBOX, and prints a note if the sandbox does not work here. @param {string} root */
async function sandboxIn(root) {
  try {
    await run(toolbox({ roots: [root] }));
    return 'required';
  } catch (thrown) {
    console.log(
      `\n  ${/** @type {Error} */ (thrown).message}\n  SANDBOX=preferred is set, so commands run without a sandbox.\n`,
    );
    return 'preferred';
  }
}

/** Returns the error message of a command where bubblewrap is not installed. @param {string} root */
async function refusalIn(root) {
  const tools = toolbox({ roots: [root], commands: { bubblewrap: '/nowhere/bwrap' } });
  return run(tools).then(
    () => 'The command ran.',
    (/** @type {Error} */ { message }) => message,
  );
}

/** True if the tests of a project pass. @param {string} cwd */
function passes(cwd) {
  return spawnSync(process.execPath, ['--test'], { cwd }).status === 0;
}

/** Returns all files below a directory with their contents. @param {string} folder @returns {Map<string, string>} */
function filesIn(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    files.map(({ parentPath, name }) => {
      const file = join(parentPath, name);
      return [file.slice(folder.length + 1), readFileSync(file, 'utf8')];
    }),
  );
}

/** @param {Map<string, string>} before @param {Map<string, string>} after */
function changedFiles(before, after) {
  return [...new Set([...before.keys(), ...after.keys()])].filter((file) => before.get(file) !== after.get(file));
}

/**
 * Returns the names of the tools, sorted, because concurrent tools end in any order.
 * @param {readonly { toolName: string }[]} results
 */
function toolsOf(results) {
  return results.map(({ toolName }) => toolName).sort();
}
