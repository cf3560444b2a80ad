import { createRondo, LoopError, type Rondo } from 'rondo';
import { type ChatHandler, chatHandler } from 'rondo/ai-sdk';
import { support } from '@/support';

export const staff = ['bob'];

/** Replace it with your authentication: the name must not come from the body of a request. */
export function userOf(request: Request): string | undefined {
  return request.headers.get('x-user') ?? undefined;
}

interface Services {
  readonly rondo: Rondo;
  readonly chat: ChatHandler;
}

async function open(): Promise<Services> {
  const rondo = await createRondo(); // SQLite in .rondo
  const chat = chatHandler({ host: rondo, agent: support.name, principal: userOf, approvers: staff });
  return { rondo, chat };
}

// Next evaluates this module once for each bundle, and again after a hot reload. The store is opened once in a process.
const shared = globalThis as typeof globalThis & { services?: Promise<Services> };

export async function getServices(): Promise<Services> {
  shared.services ??= open();
  const services = await shared.services;
  services.rondo.register(support); // After a hot reload, new turns use the new agent.
  return services;
}

export function problemOf(error: unknown): Response {
  if (!(error instanceof LoopError)) throw error;
  return Response.json({ code: error.code, message: error.message }, { status: error.httpStatus });
}
