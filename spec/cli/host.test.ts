// `rondo host` and the verbs that name hosted loops: what they print, what they refuse, and what they suggest.

import { expect } from 'vitest';
import type { ReceiptVerdict } from '../../src/protocol/receipt.js';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';
import { projectWithHostedLoops, QUICK } from './hosted-project.js';

/** Runs a verb that must fail, and returns its message. */
async function refusalOf(project: Project, ...args: readonly string[]): Promise<string> {
  const { code, stderr } = await project.run(args);
  expect(code, stderr).toBeGreaterThan(0);
  return stderr;
}

verifies(
  'hosted.control',
  'start, pause, resume and stop say what they did, or that nothing was recorded',
  async () => {
    const project = projectWithHostedLoops();
    const said = async (...args: readonly string[]): Promise<string> => {
      const { code, stderr } = await project.run(['host', ...args]);
      expect(code).toBe(0);
      return stderr.split('\n')[0] ?? '';
    };
    expect(await said('start', 'mail')).toBe('Started: mail.');
    expect(await said('pause', 'mail', '--as', 'ada')).toBe('Paused: mail.');
    expect(await said('pause', 'mail')).toBe('Was paused before: mail. Nothing was recorded.');
    expect(await said('resume', 'mail')).toBe('Resumed: mail.');
    expect(await said('resume', 'mail')).toBe('Was not paused: mail. Nothing was recorded.');
    expect(await said('stop', 'mail', '--as', 'ada', '--reason', 'enough')).toBe('Stopped: mail.');
    const again = await said('stop', 'mail', '--as', 'bob', '--reason', 'mine');
    expect(again, 'a reason was dropped silently').toBe('Was stopped before: mail (stopped_by). Nothing was recorded.');
    const { stdout } = await project.run(['host', 'status', 'mail']);
    expect(stdout).toContain('reason   Stopped by ada: enough\n');
  },
);

verifies('hosted.durable', 'a worker that had nothing to do says so, unless a program reads it', async () => {
  const project = projectWithHostedLoops();
  await project.run(['host', 'start', 'mail']);
  expect(await project.run(['worker', '--once'])).toMatchObject({ code: 0, stdout: '', stderr: 'Nothing was due.\n' });
  expect(await project.run(['worker', '--once', '--json'])).toMatchObject({ code: 0, stdout: '', stderr: '' });
  await project.run(['signal', 'mail', 'ping']);
  expect((await project.run(['worker', '--once'])).stderr).not.toContain('Nothing was due');
});

verifies('cli.signal', 'a signal to a hosted loop prints what became of it, once', async () => {
  const project = projectWithHostedLoops();
  await project.run(['host', 'start', 'mail']);
  const sent = await project.run(['signal', 'mail', 'ping', '--id', 'p-1']);
  expect(sent).toMatchObject({ code: 0, stdout: 'accepted\n' });
  expect(sent.stderr).toBe('To run the turn that it causes: rondo worker\n');
  const again = await project.run(['signal', 'mail', 'ping', '--id', 'p-1']);
  expect(again).toMatchObject({ code: 0, stdout: 'duplicate\n' });
  expect(again.stderr).toBe('The id "p-1" was received before, so no other turn follows.\n');
});

verifies('cli.input', 'an unknown hosted loop, signal or command is refused with the known ones', async () => {
  const project = projectWithHostedLoops();
  await project.run(['host', 'start', 'mail']);
  const refusals: readonly (readonly [args: string, message: string])[] = [
    ['signal mail alrm', 'declares no signal "alrm". It declares alarm, ping. Did you mean "alarm"?'],
    [
      'signal mial ping',
      'no turn or session "mial" in the store, and no hosted loop with this id was started. Did you mean the hosted loop "mail"?',
    ],
    ['signal quick ping', 'no hosted loop with this id was started. Start it: rondo host start quick'],
    [
      'host status nope',
      'No hosted loop "nope" was started in this store. It has mail. Start one: rondo host start FILE',
    ],
    ['host pause maill', 'It has mail. Did you mean "mail"?'],
    ['host stop quick', 'Start it: rondo host start quick'],
    ['host start nope', 'There is no hosted loop "nope". Known are mail, quick.'],
    ['host start loops/nope.toml', 'There is no file loops/nope.toml.'],
    ['host start hello', '"hello" is a loop, not a hosted loop. A hosted loop is a file that names it: loop = "hello"'],
    [
      'host start loops/hello.json',
      'it defines a loop, not a hosted loop; a hosted loop is another file that names it',
    ],
    ['host list', 'There is no command "host list". There are start, status, pause, resume, stop. To list all'],
    ['host', "Missing required argument 'command'. See: rondo help host"],
    ['run quick', '"quick" is a hosted loop, which runs the loop "hello": rondo host start quick'],
    ['show mail', 'The turns of the hosted loop "mail": rondo host status mail --turns'],
    ['status mail#7', 'The turns of the hosted loop "mail": rondo host status mail --turns'],
  ];
  for (const [args, message] of refusals) expect(await refusalOf(project, ...args.split(' ')), args).toContain(message);
  project.write('misspelt.toml', QUICK.replace('"hello"', '"helo"'));
  expect(await refusalOf(project, 'host', 'start', 'misspelt.toml')).toMatch(
    /There is no loop "helo"\. Known are .*hello.* Did you mean "hello"\?/,
  );
});

verifies('cli.help', 'the help of host lists its commands', async () => {
  const { stdout } = await new Project().run(['help', 'host']);
  for (const name of ['start <file>', 'status [loop]', 'pause <loop>', 'resume <loop>', 'stop <loop>'])
    expect(stdout).toContain(`\n  ${name} `);
});

verifies('hosted.document', 'check and start warn of permitted tools that do not exist', async () => {
  const project = projectWithHostedLoops();
  const permitting = (tools: string): string => QUICK.replace('allowedTools = []', `allowedTools = [${tools}]`);
  project.write('loops/quick.toml', permitting('"echo", "ehco", "review.*"'));
  const warning = 'quick.toml:4:35: /grant/allowedTools/1: is "ehco", and there is no such loop; did you mean "echo"?';
  const checked = await project.run(['check']);
  expect(checked).toMatchObject({ code: 0, stdout: expect.stringContaining(warning) });
  expect(checked.stdout.match(/warning/g)).toHaveLength(1);
  expect((await project.run(['host', 'start', 'quick'])).stderr).toContain(
    `warning: ${project.path('loops')}/${warning}`,
  );
  // A loop in code may have tools that are in no file.
  project.write(
    'loops/code.mjs',
    "import { defineLoop } from 'rondo';\nexport const code = defineLoop({ id: 'code', run: () => 1 });",
  );
  expect((await project.run(['check'])).stdout).not.toContain('no such loop');
});

verifies('cli.inspect', 'a turn of a hosted loop is named by its key, and its receipts by the loop', async () => {
  const project = projectWithHostedLoops();
  for (const loop of ['quick', 'mail']) await project.run(['host', 'start', loop]);
  await project.run(['signal', 'mail', 'ping']);
  await project.run(['worker', '--once']);
  const { turns, turnList } = await project.json<{
    turns: number;
    turnList: { turnId: string; receipt: string; endedAt: string }[];
  }>([...['host', 'status', 'quick', '--turns']]);
  expect(turns, 'a member changed its type').toBe(2);
  const [first, second] = turnList;
  expect(Date.parse(String(first?.endedAt))).toBeGreaterThan(0);
  for (const verb of ['show', 'status'])
    expect(await project.json([verb, 'quick#2'])).toMatchObject({ turnId: second?.turnId });
  const idsOf = async (reference: string): Promise<readonly string[]> =>
    (await project.json<{ receipts: { id: string }[] }>(['receipts', reference])).receipts.map(({ id }) => id);
  expect(await idsOf('quick#1')).toEqual([first?.receipt]);
  expect(await idsOf('quick')).toEqual([first?.receipt, second?.receipt]);
  const one = await project.json<ReceiptVerdict>(['verify', 'quick#2']);
  expect(one).toMatchObject({ valid: true, subject: { receipts: 1, turn: second?.turnId } });
  const all = await project.json<ReceiptVerdict>(['verify', 'quick']);
  expect(all).toMatchObject({ valid: true, subject: { receipts: 2, log: 3, hostedLoop: 'quick' } });
  await project.run(['remove', 'hosted:quick:1', '--yes']);
  const rest = await project.run(['verify', 'quick']);
  expect(rest.code, 'a removed turn is not noticed').toBe(3);
  expect(rest.stdout).toContain('FAILED  completeness: the receipts of quick#1 are missing\n');
  expect(rest.stdout).toContain('valid, but receipts are MISSING\n');
});

verifies('receipt.whole', 'a store without receipts does not look like one that was changed', async () => {
  const project = projectWithHostedLoops();
  await project.run(['host', 'start', 'mail']);
  for (const reference of ['--all', 'mail']) {
    const { code, stdout } = await project.run(['verify', reference]);
    expect({ code, stdout }).toEqual({ code: 3, stdout: 'There are no receipts, so nothing was verified.\n' });
  }
  expect(await project.json(['verify', '--all'])).toMatchObject({ valid: false, reasons: ['bundle_empty'] });
});

verifies('hosted.stops', 'a worker does not ask for the approval of a turn whose loop it stops', async () => {
  const project = projectWithHostedLoops();
  project.write(
    'loops/asking.toml',
    `id = "asking"\nloop = "echo"\ngrant = { allowedTools = ["echo"], review = { echo = "ask" }, limits = {} }
input = {}\nstop = { maxTurns = 2, approval = "pending" }\n`,
  );
  await project.run(['host', 'start', 'asking']);
  const { stderr } = await project.run(['worker', '--once']);
  expect(stderr).toContain('asking stopped: approval. The turn needs an approval.');
  expect(stderr, 'a person answers for nothing').not.toMatch(/rondo approve|Waits for approval/);
  expect((await project.run(['host', 'status', 'asking', '--turns'])).stdout).toContain('cancelled');
  expect(stderr).toContain('cancelled after');
});
