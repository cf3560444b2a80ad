/** Finds the lines and columns of problems in documents. */
import { readFile } from 'node:fs/promises';
import type { BadFile } from '../../adapters/files/index.js';
import { LoopError } from '../../base/errors.js';

/** A problem at a JSON Pointer of a document. */
interface Flaw {
  readonly path: string;
  readonly reason: string;
}

/** Adds line numbers to problems in a document. Their paths are those in its definition. */
export async function locateInFile(file: string, problems: readonly Flaw[]): Promise<readonly BadFile[]> {
  if (problems.length === 0) return [];
  const [{ parseDefinitionText }, { documentParser }] = await Promise.all([
    import('../../adapters/files/parse-definition.js'),
    import('../../loops/plan/workflow-document.js'),
  ]);
  const parse = (): never => {
    throw new LoopError('DEFINITION_INVALID', '', { flaws: problems.map((problem) => ({ ...problem })) });
  };
  const text = await readFile(file, 'utf8').catch(() => '');
  const result = parseDefinitionText(file, text, { ...documentParser, parse });
  return 'badFiles' in result ? result.badFiles : problems.map((problem) => ({ file, ...problem }));
}
