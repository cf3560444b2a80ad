// The rule of the one round loop: only the driver of plans repeats calls. A body that needs repetition is a program.

import ts from 'typescript';
import { lineOf, nodes, parse } from './syntax.js';
import type { SourceText } from './tree.js';

/** The driver, and the loops that repeat something else than the rounds of a body. */
export const ROUND_LOOPS: { readonly [file: string]: string } = {
  'src/loops/plan/driver.ts': 'the loop over the instructions of a program',
  'src/loops/plan/plan-call.ts': 'the attempts of one step',
  'src/loops/plan/fan-out.ts': 'a worker takes one branch after another',
};

/** Functions that run steps of a body, besides the methods of a scope: programs and calls of models and tools. */
const RUNNING = /^(?:runProgram|runBranch|runRound|callModel|modelEffect|performModelCall|runToolCalls|callOnce)$/;
/** The steps of a scope that call, perform or run branches. */
const SCOPE_STEPS = new Set(['call', 'effect', 'all', 'race']);

const isLoop = (node: ts.Node): boolean => ts.isIterationStatement(node, false);

/** True for a name that holds a scope: `scope`, `inner`, `branch`, or a name that ends with `Scope`. */
function isScopeName(name: string): boolean {
  return /^(?:scope|inner|branch)$|Scope$/.test(name);
}

/** True for `scope.call(…)`, `this.scope.effect(…)`, `callModel(…)` and the like. */
function isRound(node: ts.Node): boolean {
  if (!ts.isCallExpression(node)) return false;
  const { expression } = node;
  if (ts.isIdentifier(expression)) return RUNNING.test(expression.text);
  if (!ts.isPropertyAccessExpression(expression)) return false;
  if (RUNNING.test(expression.name.text)) return true;
  const receiver = expression.expression;
  const name = ts.isPropertyAccessExpression(receiver) ? receiver.name.text : receiver.getText();
  return SCOPE_STEPS.has(expression.name.text) && isScopeName(name);
}

/** Returns the functions of a file that take a step themselves, by name. A loop that calls one repeats its steps. */
function steppingFunctions(source: ts.SourceFile): ReadonlySet<string> {
  const named = new Map<string, ts.Node>();
  for (const node of nodes(source)) {
    if ((ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node)) && node.name && node.body)
      named.set(node.name.getText(source), node.body);
    else if (ts.isVariableDeclaration(node) && node.initializer && ts.isArrowFunction(node.initializer))
      named.set(node.name.getText(source), node.initializer.body);
  }
  const stepping = new Set<string>();
  const calls = (body: ts.Node): boolean => [...nodes(body)].some((node) => isRound(node) || isCallOf(node, stepping));
  for (let size = -1; size < stepping.size; ) {
    size = stepping.size;
    for (const [name, body] of named) if (calls(body)) stepping.add(name);
  }
  return stepping;
}

function isCallOf(node: ts.Node, names: ReadonlySet<string>): boolean {
  if (!ts.isCallExpression(node)) return false;
  const { expression } = node;
  const name = ts.isPropertyAccessExpression(expression) ? expression.name.text : expression.getText();
  return names.has(name);
}

/** Returns the loops of a file that repeat steps of a scope. */
export function roundLoops(text: SourceText): string[] {
  const source = parse(text);
  const stepping = steppingFunctions(source);
  return [...nodes(source)]
    .filter(isLoop)
    .filter((loop) => [...nodes(loop)].some((node) => isRound(node) || isCallOf(node, stepping)))
    .map(
      (loop) => `${text.file}:${lineOf(source, loop.getStart(source))} repeats steps; write a program for the driver`,
    );
}
