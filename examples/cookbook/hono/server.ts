import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { createRondo, LoopError } from 'rondo';
import { chatHandler, chatSession, toolKinds, uiMessages } from 'rondo/ai-sdk';
import { support } from '../support.js';

const rondo = await createRondo({ loops: [support] }); // SQLite in .rondo
const working = rondo.work(); // continues what earlier processes left behind

/** Replace it with your authentication: the name must not come from the body of a request. */
const userOf = (request: Request): string | undefined => request.headers.get('x-user') ?? undefined;
const staff = ['bob'];

const app = new Hono<{ Variables: { user: string } }>();
app.use('/api/*', async (context, next) => {
  const user = userOf(context.req.raw);
  if (user === undefined) return context.json({ code: 'NOT_AUTHORISED' }, 401);
  context.set('user', user);
  return next();
});

const chat = chatHandler({ host: rondo, agent: support, principal: userOf, approvers: staff });
app.post('/api/chat', (context) => chat(context.req.raw));
app.get('/api/chat/:id/stream', (context) => chat(context.req.raw));
app.get('/api/chat/:id', async (context) => {
  const session = await chatSession(rondo, { chatId: context.req.param('id'), principal: context.get('user') });
  return context.json(uiMessages(await rondo.events(session), { kindOf: toolKinds(rondo, support) }));
});

app.use('/api/approvals/*', async (context, next) => {
  if (!staff.includes(context.get('user'))) return context.json({ code: 'NOT_AUTHORISED' }, 403);
  return next();
});
app.get('/api/approvals', async (context) => context.json(await rondo.approvals()));
app.post('/api/approvals/:id', async (context) => {
  const { approved, reason } = await context.req.json<{ approved: boolean; reason?: string }>();
  const answer = { by: context.get('user'), ...(reason !== undefined && { reason }) };
  await (approved ? rondo.approve(context.req.param('id'), answer) : rondo.deny(context.req.param('id'), answer));
  return context.body(null, 204);
});

app.onError((error, context) => {
  if (!(error instanceof LoopError)) return context.json({ code: 'INTERNAL' }, 500);
  return Response.json({ code: error.code, message: error.message }, { status: error.httpStatus });
});

const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env.PORT ?? 3000) }, ({ port }) =>
  console.log(`http://127.0.0.1:${port}`),
);

async function shutDown(): Promise<void> {
  server.close(); // refuses new connections
  await rondo.close(); // stops the worker, interrupts turns after their current effects, and ends their streams
  await working;
  if ('closeIdleConnections' in server) server.closeIdleConnections(); // instead of waiting for their keep-alive timeout
}
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, shutDown);
