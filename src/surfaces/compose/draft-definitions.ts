/**
 * Documents with plans that could not be registered, as far as they can be analyzed: all mistakes of a file are reported
 * at once, not only those that were found first.
 */
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { BadFile } from '../../adapters/files/index.js';
import type { DefinitionIssue } from '../../loops/definition/shape.js';
import type { AnalyzedLoop, LoopTable, PlanProblems } from '../../loops/plan/analysis/analyze.js';
import type { RegisteredLoop, Registry } from '../../loops/registry.js';

/** A document that could not be registered. */
export interface DraftDefinition extends AnalyzedLoop {
  readonly file: string;
  /** What is wrong with its schemas, verbs and models. */
  readonly issues: readonly DefinitionIssue[];
}

/** Returns the plans in files that could not be registered. Workflows refer to each other by their files. */
export async function draftDefinitions(
  registry: Registry,
  badFiles: readonly BadFile[],
  loops: readonly { readonly file: string; readonly registered: RegisteredLoop }[],
): Promise<readonly DraftDefinition[]> {
  // A problem with a path is one of a document that was read.
  const read = badFiles.filter(({ file, path }) => path !== undefined && /\.(?:json|toml)$/.test(file));
  const files = [...new Set(read.map(({ file }) => file))];
  if (files.length === 0) return [];
  const [{ nameOfFile, parseDocument }, { documentParser }, { DefinitionIssues }] = await Promise.all([
    import('../../adapters/files/parse-definition.js'),
    import('../../loops/plan/workflow-document.js'),
    import('../../loops/definition/shape.js'),
  ]);
  const idsByFile = new Map([
    ...badFiles.flatMap(({ file, loopId }) => (loopId === undefined ? [] : [[file, loopId] as const])),
    ...loops.map(({ file, registered }) => [file, registered.definition.id] as const),
  ]);
  const drafts = files.map(async (file): Promise<readonly DraftDefinition[]> => {
    const document = parseDocument(file, await readFile(file, 'utf8').catch(() => ''));
    const paths = documentParser.workflowPaths(document).map((path) => [path, resolve(dirname(file), path)] as const);
    const ids = new Map(paths.flatMap(([path, target]) => withId(path, idsByFile.get(target))));
    const issues = new DefinitionIssues();
    const draft = documentParser.draft(document, nameOfFile(file), ids, issues);
    return draft === undefined ? [] : [{ file, definition: registry.bind(draft, issues, file), issues: issues.list }];
  });
  return (await Promise.all(drafts)).flat();
}

function withId(path: string, id: string | undefined): readonly (readonly [string, string])[] {
  return id === undefined ? [] : [[path, id]];
}

/** Returns what is wrong with a draft, without its steps. */
export function ownProblems(draft: DraftDefinition): PlanProblems<AnalyzedLoop> {
  return { loop: draft, issues: draft.issues };
}

/** Returns the table of the registered loops and the drafts. */
export function withDrafts(registry: Registry, drafts: readonly DraftDefinition[]): LoopTable<AnalyzedLoop> {
  return {
    find: (id, version) =>
      registry.find(id, version) ?? drafts.find(({ definition }) => definition.id === id && version === undefined),
  };
}
