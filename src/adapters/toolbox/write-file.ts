/**
 * The tool `write_file`: creates or replaces a whole file. A person approves the content, which is in the input. The
 * diff in the question compares it with the file at that time. With `expect`, the file is written only if its content
 * has this digest, or, if `expect` is `none`, only if it does not exist.
 */
import { defineActionTool, type ToolboxTool } from './define-tool.js';
import { applyChange, type ContentTransform, MAX_WRITE_BYTES, previewChange } from './file-change.js';
import { defineInput, type InferInput } from './input-schema.js';
import { digestOf } from './read-contents.js';
import type { Roots } from './roots.js';
import { quotePath, toolError } from './tool-error.js';

/** The value of `expect` for a file that must not exist. */
const NO_FILE = 'none';

const inputSchema = defineInput({
  path: { type: 'string', min: 1, description: 'The file. Missing directories are created.' },
  content: { type: 'string', max: MAX_WRITE_BYTES, description: 'The complete content of the file.' },
  expect: {
    type: 'string',
    optional: true,
    min: 1,
    max: 64,
    description: `Writes only if the replaced file has this digest (from view_file), or, with "${NO_FILE}", if the file does not exist.`,
  },
});

type WriteFileInput = InferInput<typeof inputSchema>;

/** Creates the tool `write_file`. */
export function writeFileTool(roots: Roots): ToolboxTool<WriteFileInput> {
  return defineActionTool({
    name: 'write_file',
    description: 'Creates or replaces a whole file. To change a part of a file, use edit_file.',
    inputSchema,
    safety: 'once',
    approvalMessage: async (input) => {
      const { path, diff } = await previewChange(roots, input.path, writeTransform(input));
      return `Write ${path}:\n${diff}`;
    },
    approvalTarget: ({ path }) => roots.approvalTargetOf(path),
    execute: (input, { approvedTarget, confinement }) =>
      applyChange(roots.confinedTo(confinement), input.path, writeTransform(input), approvedTarget),
  });
}

function writeTransform({ path, content, expect }: WriteFileInput): ContentTransform {
  return (current) => {
    const currentDigest = current === undefined ? NO_FILE : digestOf(current);
    if (expect === undefined || expect === currentDigest) return content;
    const actual = current === undefined ? 'there is no such file' : `the file has the digest ${currentDigest}`;
    throw toolError(`${quotePath(path)} was not written: it does not match expect, as ${actual}. View it again.`);
  };
}
