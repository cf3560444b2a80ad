import { chatSession, toolKinds, uiMessages } from 'rondo/ai-sdk';
import { getServices, userOf } from '@/rondo';
import { support } from '@/support';

export async function GET(request: Request, { params }: { params: Promise<{ id: string }> }): Promise<Response> {
  const principal = userOf(request);
  if (principal === undefined) return new Response(null, { status: 401 });
  const { rondo } = await getServices();
  const session = await chatSession(rondo, { chatId: (await params).id, principal });
  return Response.json(uiMessages(await rondo.events(session), { kindOf: toolKinds(rondo, support) }));
}
