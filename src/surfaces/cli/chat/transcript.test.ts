import { expect } from 'vitest';
import { attacks, HARMFUL, withoutStyles } from '../../../../spec/cli/attacks.js';
import { verifies } from '../../../../spec/verifies.js';
import type { EventContents, EventEnvelope, EventType } from '../../../protocol/events.js';
import type { LiveDelta } from '../../../protocol/live.js';
import { createColors, widthOf } from '../terminal-text.js';
import { Transcript, type TranscriptOptions } from './transcript.js';

/** Renders envelopes with consecutive ids. Envelopes of one reply share the number before the dot. */
class TestSession {
  readonly transcript: Transcript;
  private seq = 0;
  private index = 0;

  constructor(options: Partial<TranscriptOptions> = {}) {
    this.transcript = new Transcript({ color: false, width: () => 60, ...options });
  }

  add<T extends EventType>(generationId: string, type: T, content: EventContents[T], id?: string): string {
    if (id === undefined) this.index = 0;
    const envelopeId = id ?? `${++this.seq}.0`;
    return this.transcript.renderEnvelope(envelopeOf(envelopeId, generationId, type, content));
  }

  /** Adds another envelope of the same entry. */
  addToEntry<T extends EventType>(generationId: string, type: T, content: EventContents[T]): string {
    return this.add(generationId, type, content, `${this.seq}.${++this.index}`);
  }

  restart(text: string): string {
    return this.transcript.renderDelta({ kind: 'text', text, generationId: 't', isRestart: true });
  }

  addDelta(kind: LiveDelta['kind'], text: string, generationId = 't', toolCallId?: string): string {
    return this.transcript.renderDelta({ kind, text, generationId, ...(toolCallId !== undefined && { toolCallId }) });
  }
}

function envelopeOf<T extends EventType>(id: string, generationId: string, type: T, content: EventContents[T]) {
  const createdAt = '2030-01-01T00:00:00.000Z';
  return { id, sessionId: 's', generationId, type, content, createdAt } as EventEnvelope;
}

const call = (toolCallId: string, toolName: string, args: EventContents['tool-call']['args'] = {}) => ({
  toolCallId,
  toolName,
  args,
});

verifies('cli.chat', 'a streamed message is completed, never repeated or lost', () => {
  const session = new TestSession();
  expect(session.addDelta('reasoning', 'Let me think.')).toBe('│ Let me');
  expect(session.addDelta('text', 'The answer')).toBe(' think.\n│ The');
  expect(session.addDelta('text', ' is 42.')).toBe(' answer is');
  expect(session.add('t', 'reasoning', { text: 'Let me think.' })).toBe('');
  expect(session.add('t', 'assistant-message', { text: 'The answer is 42. Truly.' })).toBe(' 42. Truly.\n');
  expect(session.add('t', 'assistant-message', { text: 'Not streamed.' })).toBe('│ Not streamed.\n');
  session.addDelta('text', 'half of an attempt that ');
  expect(session.add('t', 'assistant-message', { text: 'Another answer.' })).toBe('\n(in full)\n│ Another answer.\n');
  session.addDelta('text', 'This does not ');
  expect(session.restart('This ')).toBe('\n(retry)\n│ This');
  expect(session.add('t', 'assistant-message', { text: 'This holds.' })).toBe(' holds.\n');
  expect(session.restart('')).toBe('');
});

verifies('cli.chat', 'every tool call has a line, and its result or error is shown', () => {
  const session = new TestSession();
  expect(session.add('t', 'tool-call', call('c1', 'pay', { to: 'Ada', amount: 5 }))).toBe(
    '● pay {"to":"Ada","amount":5}\n',
  );
  expect(session.add('t', 'tool-result', { ...call('c1', 'pay'), result: { paid: 5 } })).toBe('✓ pay {"paid":5}\n');
  expect(session.add('t', 'tool-result', { ...call('c2', 'read'), result: 'one\ntwo' })).toBe(
    '✓ read\n  │ one\n  │ two\n',
  );
  expect(session.add('t', 'tool-error', { ...call('c3', 'pay'), error: 'No money.' })).toBe(
    '✗ pay failed: No money.\n',
  );
  const long = session.add('t', 'tool-error', { ...call('c4', 'pay'), error: `${'why '.repeat(30)}end` });
  expect(long).toMatch(/^✗ pay failed\n {2}│ why/);
  expect(long).toContain('end');
  const rejected = { ...call('c5', 'pay'), error: 'ada did not approve it.', isUserRejection: true };
  expect(session.add('t', 'tool-error', rejected)).toBe('✗ pay was not approved: ada did not approve it.\n');
  const wide = session.add('t', 'tool-call', call('c6', 'pay', { text: 'x'.repeat(500) }));
  expect(widthOf(wide.trimEnd())).toBeLessThan(60);
});

verifies('cli.chat', 'the live output of a tool is shown once', () => {
  const session = new TestSession();
  session.add('t', 'tool-call', call('c1', 'build'));
  expect(session.addDelta('tool-output', 'step 1\nstep 2\n', 't', 'c1')).toBe('  │ step 1\n  │ step 2\n');
  const content = { ...call('c1', 'build'), result: 'done', output: 'step 1\nstep 2\n' };
  expect(session.add('t', 'tool-result', content)).toBe('✓ build done\n');
  expect(session.add('t', 'tool-result', content)).toBe('  │ step 1\n  │ step 2\n✓ build done\n');
  expect(session.addDelta('tool-input', '{"half')).toBe('');
});

verifies('cli.chat', 'a result that contains the shown output is not repeated, and other results are shown', () => {
  const output = 'ok 1\nok 2\n';
  const content = { ...call('c1', 'test'), result: { exitCode: 0, output }, output };
  const session = new TestSession();
  session.addDelta('tool-output', output, 't', 'c1');
  expect(session.add('t', 'tool-result', content)).toBe('✓ test {"exitCode":0}\n');
  const late = new TestSession();
  expect(late.add('t', 'tool-result', content)).toBe('  │ ok 1\n  │ ok 2\n✓ test {"exitCode":0}\n');
  session.addDelta('tool-output', 'ok 1\n', 't', 'c1');
  expect(session.add('t', 'tool-result', content)).toBe('✓ test {"exitCode":0}\n  │ ok 1\n  │ ok 2\n');
});

verifies('cli.chat', 'a diff in a result is coloured', () => {
  const session = new TestSession({ color: true });
  const diff = '--- a\n+++ a\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n';
  const text = session.add('t', 'tool-result', { ...call('c1', 'edit_file'), result: { path: 'a', diff } });
  const { green, red } = createColors(true);
  expect(text).toContain(green('+new'));
  expect(text).toContain(red('-old'));
  expect(text.split('\n')[0]).toContain('{"path":"a"}');
});

verifies('cli.chat', 'the output of sub-agents is indented and has a heading', () => {
  const session = new TestSession();
  const lines = [
    session.add('t', 'user-message', { text: 'go' }),
    session.add('t', 'assistant-message', { text: 'I ask two.' }),
    session.addToEntry('t', 'tool-call', call('c1', 'left', { prompt: 'l' })),
    session.addToEntry('t', 'tool-call', call('c2', 'right', { prompt: 'r' })),
    session.add('t/2/0/0', 'loop-triggered', { triggeredBy: 'top', parentGenerationId: 't' }),
    session.add('t/2/1/0', 'loop-triggered', { triggeredBy: 'top', parentGenerationId: 't' }),
    session.addDelta('text', 'I am left.', 't/2/0/0'),
    session.addDelta('text', 'I am right.', 't/2/1/0'),
    session.add('t/2/0/0', 'other-agent-message', { text: 'I am left.', agent: 'left' }),
    session.add('t/2/1/0', 'other-agent-message', { text: 'I am right.', agent: 'right' }),
    session.add('t', 'child-generation', child('t/2/0/0', 'left')),
    session.addToEntry('t', 'tool-result', { ...call('c1', 'left'), result: { text: 'I am left.' } }),
    session.add('t', 'child-generation', { ...child('t/2/1/0', 'right'), status: 'error' }),
    session.addToEntry('t', 'tool-error', { ...call('c2', 'right'), error: 'It broke.' }),
  ];
  expect(lines.join('').trimEnd().split('\n')).toEqual([
    '› go',
    '│ I ask two.',
    '● left {"prompt":"l"}',
    '● right {"prompt":"r"}',
    '  ▸ left',
    '  │ I am left.',
    '  ▸ right',
    '  │ I am right.',
    '✓ left 1.20 s',
    '✗ right failed: It broke.',
  ]);
});

function child(childGenerationId: string, item: string): EventContents['child-generation'] {
  return { item, childGenerationId, status: 'ok', index: 0, total: 2, durationMs: 1200, parentGenerationId: 't' };
}

verifies('cli.chat', 'a single sub-agent needs no heading, and a deep one is indented', () => {
  const session = new TestSession();
  session.add('t', 'tool-call', call('c1', 'mid'));
  session.add('t/2/0/0', 'loop-triggered', { triggeredBy: 'top', parentGenerationId: 't' });
  expect(session.addDelta('text', 'One.\n', 't/2/0/0')).toBe('  │ One.\n');
  expect(session.add('t/2/0/0/5/0/0', 'tool-call', call('c9', 'dig'))).toBe('    ▸ an agent\n    ● dig {}\n');
  expect(session.addDelta('text', 'Back.\n', 't/2/0/0')).toBe('  │ Back.\n');
});

verifies('cli.chat', 'approvals from elsewhere, stopped turns and failures are shown', () => {
  const session = new TestSession();
  const pay = call('c1', 'pay');
  expect(session.add('t', 'tool-call', pay, '5.0')).toBe('● pay {}\n');
  const pending = { ...pay, approvalStatus: 'pending_approval', approvalId: 'a' } as const;
  expect(session.add('t', 'tool-call', pending, '5.0')).toBe('? pay waits for approval\n');
  expect(session.add('t', 'tool-call', { ...pay, approvalStatus: 'approved' }, '5.0')).toBe('✓ pay was approved\n');
  expect(session.add('t', 'user-abort', { generationId: 't' })).toBe('■ Stopped.\n');
  expect(session.add('t', 'tool-error', { ...pay, error: 'cancelled' })).toBe('');
  expect(session.add('u', 'generation-failure', { error: 'BACKEND_FAILED: no' })).toBe(
    '✗ Failed:\n│ BACKEND_FAILED: no\n',
  );
  expect(session.add('u', 'trigger', { triggerName: 'timer' })).toBe('▸ Triggered by:\n│ timer\n');
});

/** Renders a session in which every untrusted text is `text`. */
function renderHostileSession(text: string, color: boolean): string {
  const session = new TestSession({ color, width: () => 80 });
  const hostile = call(text, text, { [text]: text });
  const deltas = text.length > 5000 ? [text] : Array.from({ length: text.length }, (_, index) => text.charAt(index));
  return [
    session.add('t', 'user-message', { text }),
    ...deltas.map((delta) => session.addDelta('reasoning', delta)),
    session.add('t', 'reasoning', { text }),
    ...deltas.map((delta) => session.addDelta('text', delta)),
    session.add('t', 'assistant-message', { text }),
    session.addToEntry('t', 'tool-call', hostile),
    session.add('t/2/0/0', 'loop-triggered', { triggeredBy: text, parentGenerationId: 't', instructions: text }),
    ...deltas.map((delta) => session.addDelta('tool-output', delta, 't/2/0/0', 'c')),
    session.add('t/2/0/0', 'other-agent-message', { text, agent: text }),
    session.add('t/2/0/0', 'tool-result', { ...call('c', text), result: { [text]: text }, output: text }),
    session.add('t/2/0/0', 'tool-error', { ...call('d', text), error: text }),
    session.add('t', 'child-generation', { ...child('t/2/0/0', text), summary: text }),
    session.add('t', 'tool-error', { ...call('d', text), error: text, isUserRejection: true }),
    session.add('t', 'generation-failure', { error: text }),
    session.add('t', 'trigger', { triggerName: text, payload: text }),
    session.transcript.endRow(),
  ].join('');
}

verifies('approval.display', 'hostile text in a chat cannot control the terminal or imitate a prompt', () => {
  for (const attack of attacks) {
    for (const color of attack.length > 100_000 ? [false] : [false, true]) {
      const lines = withoutStyles(renderHostileSession(attack, color)).split('\n');
      expect(lines.join('\n')).not.toMatch(HARMFUL);
      expect(lines.filter((line) => widthOf(line) >= 80)).toEqual([]);
      // Lines of Rondo begin with a symbol; all other lines have a bar.
      expect(lines.filter((line) => !/^ *(?:[│›●✓✗■▸](?: |$)|$)/.test(line))).toEqual([]);
      expect(lines.filter((line) => /^ *\?/.test(line))).toEqual([]);
    }
  }
});
