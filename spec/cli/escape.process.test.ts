// Output of verbs on a terminal.

import { expect } from 'vitest';
import { Project, tool } from '../support/cli-project.js';
import { verifies } from '../verifies.js';
import { HIDDEN_IN_JSON } from './attacks.js';
import { hasScript, Pty } from './pty.js';

verifies('cli.escape', 'JSON on a terminal is escaped too', async (context) => {
  context.skip(!hasScript, 'needs script');
  const project = new Project({ echo: tool('echo', 'echo') });
  project.write('in.json', JSON.stringify({ text: 'a\u009b2J\u202eb\u200b\u2028' }));
  for (const more of [['--json'], []]) {
    const shown = new Pty(project, ['run', 'echo', '--input', '@in.json', ...more]);
    await shown.waitFor('a\\u009b2J\\u202eb\\u200b\\u2028');
    await shown.ended;
    expect(shown.text.replaceAll('\r', '')).not.toMatch(HIDDEN_IN_JSON);
  }
});
