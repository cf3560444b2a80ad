/**
 * `write_file`: a whole file, new or in place of another. What a person approves is the content, which is in the input.
 * The diff they see is against the file as it is then; `expect` makes that binding, however much later it is done.
 */
import { defineActionTool, type ToolboxTool } from './define-tool.js';
import { applyChange, type ContentTransform, MAX_WRITE_BYTES, previewChange } from './file-change.js';
import { defineInput, type InferInput } from './input-schema.js';
import { digestOf } from './read-contents.js';
import type { Roots } from './roots.js';
import { quotePath, toolError } from './tool-error.js';

/** That there is no file yet. */
const NO_FILE = 'none';

const inputSchema = defineInput({
  path: { type: 'string', min: 1, description: 'The file. Directories that lead to it are made.' },
  content: { type: 'string', max: MAX_WRITE_BYTES, description: 'All that the file is to hold.' },
  expect: {
    type: 'string',
    optional: true,
    min: 1,
    max: 64,
    description: `Writes only if the file that is replaced has this digest (from view_file), or, with "${NO_FILE}", if there is none.`,
  },
});

type WriteFileInput = InferInput<typeof inputSchema>;

export function writeFileTool(roots: Roots): ToolboxTool<WriteFileInput> {
  return defineActionTool({
    name: 'write_file',
    description: 'Writes a whole file, new or in place of another. To change a part of a file use edit_file.',
    inputSchema,
    safety: 'once',
    approvalMessage: async (input) => {
      const { path, diff } = await previewChange(roots, input.path, writeTransform(input));
      return `Write ${path}:\n${diff}`;
    },
    approvalTarget: ({ path }) => roots.approvalTargetOf(path),
    execute: (input, { approvedTarget }) => applyChange(roots, input.path, writeTransform(input), approvedTarget),
  });
}

function writeTransform({ path, content, expect }: WriteFileInput): ContentTransform {
  return (present) => {
    const there = present === undefined ? NO_FILE : digestOf(present);
    if (expect === undefined || expect === there) return content;
    const instead = present === undefined ? 'there is no such file' : `the file there has the digest ${there}`;
    throw toolError(`${quotePath(path)} was not written: it is not what was expected, as ${instead}. View it again.`);
  };
}
