/**
 * The sink: a process of its own that sees every effect, writes it down with a sync before it answers, and so can judge
 * afterwards, from outside, what a runtime that was killed really did. Effects with one idempotency key count as one.
 */
import { spawn } from 'node:child_process';
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Json } from '../protocol/json.js';

/** One thing that was reported to the sink; `key` is what duplicates are told apart by. */
export interface ReportedEffect {
  readonly key: string;
  readonly kind: string;
  readonly data?: Json;
}

export interface EffectSink {
  readonly url: string;
  /** All that was seen, in order, read from the sink's file. */
  reportedEffects(): readonly ReportedEffect[];
  close(): Promise<void>;
}

/** Starts a sink that writes to `file`. It ends when told to, or when its parent is gone. `program` is this file, compiled. */
export async function startEffectSink(
  file: string,
  program: string = fileURLToPath(import.meta.url),
): Promise<EffectSink> {
  const child = spawn(process.execPath, [program, 'rondo-sink', file], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (line) => resolve(String(line).trim()));
    child.once('exit', (code) => reject(new Error(`The sink ended with code ${code} before it was ready.`)));
  });
  const lines = (): string[] => readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return {
    url,
    reportedEffects: () => lines().map((line) => JSON.parse(line) as ReportedEffect),
    close: () =>
      new Promise((resolve) => {
        child.once('exit', () => resolve());
        child.stdin.end();
      }),
  };
}

/** Tells the sink of an effect; resolves once the sink has it on disk. */
export async function reportEffect(url: string, sighting: ReportedEffect): Promise<void> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(sighting) });
  if (!response.ok) throw new Error(`The sink answered ${response.status}.`);
}

/** Whether the sink has seen anything under a key. */
export async function wasReported(url: string, key: string): Promise<boolean> {
  const response = await fetch(`${url}?key=${encodeURIComponent(key)}`);
  return ((await response.json()) as { seen: boolean }).seen;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text;
}

function serveEffectSink(file: string): void {
  const log = openSync(file, 'a');
  const seen = new Set<string>();
  const server = createServer(async (request, response) => {
    if (request.method === 'POST') {
      const sighting = JSON.parse(await bodyOf(request)) as ReportedEffect;
      writeSync(log, `${JSON.stringify(sighting)}\n`);
      fsyncSync(log);
      seen.add(sighting.key);
    }
    const key = new URL(request.url ?? '/', 'http://sink').searchParams.get('key') ?? '';
    response.end(JSON.stringify({ seen: seen.has(key) }));
  });
  server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`));
  process.stdin.resume();
  process.stdin.on('end', () => {
    closeSync(log);
    process.exit(0);
  });
}

if (process.argv[2] === 'rondo-sink' && process.argv[1] === fileURLToPath(import.meta.url))
  serveEffectSink(process.argv[3] ?? '');
