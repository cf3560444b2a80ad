import { expect } from 'vitest';
import { attacks, withoutStyles as bare, HARMFUL } from '../../../../spec/cli/attacks.js';
import { verifies } from '../../../../spec/verifies.js';
import type { EventContents, EventEnvelope, EventType } from '../../../protocol/events.js';
import type { LiveDelta } from '../../../protocol/live.js';
import { createColors, widthOf } from '../terminal-text.js';
import { Transcript, type TranscriptOptions } from './transcript.js';

/** Makes envelopes one after another; those of one reply share the number before the point. */
class Teller {
  readonly transcript: Transcript;
  private seq = 0;
  private nth = 0;

  constructor(look: Partial<TranscriptOptions> = {}) {
    this.transcript = new Transcript({ color: false, width: () => 60, ...look });
  }

  tell<T extends EventType>(generationId: string, type: T, content: EventContents[T], id?: string): string {
    if (id === undefined) this.nth = 0;
    const place = id ?? `${++this.seq}.0`;
    return this.transcript.renderEnvelope(envelopeOf(place, generationId, type, content));
  }

  /** Another envelope of the entry before. */
  also<T extends EventType>(generationId: string, type: T, content: EventContents[T]): string {
    return this.tell(generationId, type, content, `${this.seq}.${++this.nth}`);
  }

  again(text: string): string {
    return this.transcript.renderDelta({ kind: 'text', text, generationId: 't', isRestart: true });
  }

  piece(kind: LiveDelta['kind'], text: string, generationId = 't', toolCallId?: string): string {
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

verifies('cli.chat', 'what was streamed is told a second time, or what was not is lost', () => {
  const teller = new Teller();
  expect(teller.piece('reasoning', 'Let me think.')).toBe('│ Let me');
  expect(teller.piece('text', 'The answer')).toBe(' think.\n│ The');
  expect(teller.piece('text', ' is 42.')).toBe(' answer is');
  expect(teller.tell('t', 'reasoning', { text: 'Let me think.' })).toBe('');
  expect(teller.tell('t', 'assistant-message', { text: 'The answer is 42. Truly.' })).toBe(' 42. Truly.\n');
  expect(teller.tell('t', 'assistant-message', { text: 'Not streamed.' })).toBe('│ Not streamed.\n');
  teller.piece('text', 'half of an attempt that ');
  expect(teller.tell('t', 'assistant-message', { text: 'Another answer.' })).toBe('\n(in full)\n│ Another answer.\n');
  teller.piece('text', 'This does not ');
  expect(teller.again('This ')).toBe('\n(once more)\n│ This');
  expect(teller.tell('t', 'assistant-message', { text: 'This holds.' })).toBe(' holds.\n');
  expect(teller.again('')).toBe('');
});

verifies('cli.chat', 'a tool runs without a line, or nobody sees what came of it', () => {
  const teller = new Teller();
  expect(teller.tell('t', 'tool-call', call('c1', 'pay', { to: 'Ada', amount: 5 }))).toBe(
    '● pay {"to":"Ada","amount":5}\n',
  );
  expect(teller.tell('t', 'tool-result', { ...call('c1', 'pay'), result: { paid: 5 } })).toBe('✓ pay {"paid":5}\n');
  expect(teller.tell('t', 'tool-result', { ...call('c2', 'read'), result: 'one\ntwo' })).toBe(
    '✓ read\n  │ one\n  │ two\n',
  );
  expect(teller.tell('t', 'tool-error', { ...call('c3', 'pay'), error: 'No money.' })).toBe(
    '✗ pay failed: No money.\n',
  );
  const long = teller.tell('t', 'tool-error', { ...call('c4', 'pay'), error: `${'why '.repeat(30)}end` });
  expect(long).toMatch(/^✗ pay failed\n {2}│ why/);
  expect(long).toContain('end');
  const rejected = { ...call('c5', 'pay'), error: 'ada did not approve it.', isUserRejection: true };
  expect(teller.tell('t', 'tool-error', rejected)).toBe('✗ pay was not approved: ada did not approve it.\n');
  const wide = teller.tell('t', 'tool-call', call('c6', 'pay', { text: 'x'.repeat(500) }));
  expect(widthOf(wide.trimEnd())).toBeLessThan(60);
});

verifies('cli.chat', 'what a tool says while it works is not seen, or seen twice', () => {
  const teller = new Teller();
  teller.tell('t', 'tool-call', call('c1', 'build'));
  expect(teller.piece('tool-output', 'step 1\nstep 2\n', 't', 'c1')).toBe('  │ step 1\n  │ step 2\n');
  const content = { ...call('c1', 'build'), result: 'done', output: 'step 1\nstep 2\n' };
  expect(teller.tell('t', 'tool-result', content)).toBe('✓ build done\n');
  expect(teller.tell('t', 'tool-result', content)).toBe('  │ step 1\n  │ step 2\n✓ build done\n');
  expect(teller.piece('tool-input', '{"half')).toBe('');
});

verifies(
  'cli.chat',
  'what a tool put out is shown once more as its result, or a result is taken for what was shown',
  () => {
    const output = 'ok 1\nok 2\n';
    const content = { ...call('c1', 'test'), result: { exitCode: 0, output }, output };
    const teller = new Teller();
    teller.piece('tool-output', output, 't', 'c1');
    expect(teller.tell('t', 'tool-result', content)).toBe('✓ test {"exitCode":0}\n');
    const late = new Teller();
    expect(late.tell('t', 'tool-result', content)).toBe('  │ ok 1\n  │ ok 2\n✓ test {"exitCode":0}\n');
    teller.piece('tool-output', 'ok 1\n', 't', 'c1');
    expect(teller.tell('t', 'tool-result', content)).toBe('✓ test {"exitCode":0}\n  │ ok 1\n  │ ok 2\n');
  },
);

verifies('cli.chat', 'a change of a file is not seen as one', () => {
  const teller = new Teller({ color: true });
  const diff = '--- a\n+++ a\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n';
  const told = teller.tell('t', 'tool-result', { ...call('c1', 'edit_file'), result: { path: 'a', diff } });
  const { green, red } = createColors(true);
  expect(told).toContain(green('+new'));
  expect(told).toContain(red('-old'));
  expect(told.split('\n')[0]).toContain('{"path":"a"}');
});

verifies('cli.chat', 'nobody can tell what a sub-agent does from what the agent does', () => {
  const teller = new Teller();
  const lines = [
    teller.tell('t', 'user-message', { text: 'go' }),
    teller.tell('t', 'assistant-message', { text: 'I ask two.' }),
    teller.also('t', 'tool-call', call('c1', 'left', { prompt: 'l' })),
    teller.also('t', 'tool-call', call('c2', 'right', { prompt: 'r' })),
    teller.tell('t/2/0/0', 'loop-triggered', { triggeredBy: 'top', parentGenerationId: 't' }),
    teller.tell('t/2/1/0', 'loop-triggered', { triggeredBy: 'top', parentGenerationId: 't' }),
    teller.piece('text', 'I am left.', 't/2/0/0'),
    teller.piece('text', 'I am right.', 't/2/1/0'),
    teller.tell('t/2/0/0', 'other-agent-message', { text: 'I am left.', agent: 'left' }),
    teller.tell('t/2/1/0', 'other-agent-message', { text: 'I am right.', agent: 'right' }),
    teller.tell('t', 'child-generation', child('t/2/0/0', 'left')),
    teller.also('t', 'tool-result', { ...call('c1', 'left'), result: { text: 'I am left.' } }),
    teller.tell('t', 'child-generation', { ...child('t/2/1/0', 'right'), status: 'error' }),
    teller.also('t', 'tool-error', { ...call('c2', 'right'), error: 'It broke.' }),
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
  const place = { index: 0, total: 2, durationMs: 1200, parentGenerationId: 't' };
  return { item, childGenerationId, status: 'ok', ...place };
}

verifies('cli.chat', 'the only child of a reply is named twice, or a deep one stands at the top', () => {
  const teller = new Teller();
  teller.tell('t', 'tool-call', call('c1', 'mid'));
  teller.tell('t/2/0/0', 'loop-triggered', { triggeredBy: 'top', parentGenerationId: 't' });
  expect(teller.piece('text', 'One.\n', 't/2/0/0')).toBe('  │ One.\n');
  expect(teller.tell('t/2/0/0/5/0/0', 'tool-call', call('c9', 'dig'))).toBe('    ▸ an agent\n    ● dig {}\n');
  expect(teller.piece('text', 'Back.\n', 't/2/0/0')).toBe('  │ Back.\n');
});

verifies('cli.chat', 'an approval that was given elsewhere, or a turn that was stopped, is not told', () => {
  const teller = new Teller();
  const pay = call('c1', 'pay');
  expect(teller.tell('t', 'tool-call', pay, '5.0')).toBe('● pay {}\n');
  const asked = { ...pay, approvalStatus: 'pending_approval', approvalId: 'a' } as const;
  expect(teller.tell('t', 'tool-call', asked, '5.0')).toBe('? pay waits for approval\n');
  expect(teller.tell('t', 'tool-call', { ...pay, approvalStatus: 'approved' }, '5.0')).toBe('✓ pay was approved\n');
  expect(teller.tell('t', 'user-abort', { generationId: 't' })).toBe('■ Stopped.\n');
  expect(teller.tell('t', 'tool-error', { ...pay, error: 'cancelled' })).toBe('');
  expect(teller.tell('u', 'generation-failure', { error: 'BACKEND_FAILED: no' })).toBe(
    '✗ It failed:\n│ BACKEND_FAILED: no\n',
  );
  expect(teller.tell('u', 'trigger', { triggerName: 'timer' })).toBe('▸ Triggered by:\n│ timer\n');
});

/** Everything that is told when all that others have a say in is this text. */
function tellAll(text: string, color: boolean): string {
  const teller = new Teller({ color, width: () => 80 });
  const hostile = call(text, text, { [text]: text });
  const pieces = text.length > 5000 ? [text] : Array.from({ length: text.length }, (_, index) => text.charAt(index));
  return [
    teller.tell('t', 'user-message', { text }),
    ...pieces.map((piece) => teller.piece('reasoning', piece)),
    teller.tell('t', 'reasoning', { text }),
    ...pieces.map((piece) => teller.piece('text', piece)),
    teller.tell('t', 'assistant-message', { text }),
    teller.also('t', 'tool-call', hostile),
    teller.tell('t/2/0/0', 'loop-triggered', { triggeredBy: text, parentGenerationId: 't', instructions: text }),
    ...pieces.map((piece) => teller.piece('tool-output', piece, 't/2/0/0', 'c')),
    teller.tell('t/2/0/0', 'other-agent-message', { text, agent: text }),
    teller.tell('t/2/0/0', 'tool-result', { ...call('c', text), result: { [text]: text }, output: text }),
    teller.tell('t/2/0/0', 'tool-error', { ...call('d', text), error: text }),
    teller.tell('t', 'child-generation', { ...child('t/2/0/0', text), summary: text }),
    teller.tell('t', 'tool-error', { ...call('d', text), error: text, isUserRejection: true }),
    teller.tell('t', 'generation-failure', { error: text }),
    teller.tell('t', 'trigger', { triggerName: text, payload: text }),
    teller.transcript.endRow(),
  ].join('');
}

verifies('approval.display', 'a model moves the cursor, clears the screen, or fakes a question in a chat', () => {
  for (const attack of attacks) {
    for (const color of attack.length > 100_000 ? [false] : [false, true]) {
      const lines = bare(tellAll(attack, color)).split('\n');
      expect(lines.join('\n')).not.toMatch(HARMFUL);
      expect(lines.filter((line) => widthOf(line) >= 80)).toEqual([]);
      // Ours are the lines with a sign of their own; all others stand behind a bar.
      expect(lines.filter((line) => !/^ *(?:[│›●✓✗■▸](?: |$)|$)/.test(line))).toEqual([]);
      expect(lines.filter((line) => /^ *\?/.test(line))).toEqual([]);
    }
  }
});
