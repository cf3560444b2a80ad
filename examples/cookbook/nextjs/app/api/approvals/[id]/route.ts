import { getServices, problemOf, staff, userOf } from '@/rondo';

export async function POST(request: Request, { params }: { params: Promise<{ id: string }> }): Promise<Response> {
  const by = userOf(request) ?? '';
  if (!staff.includes(by)) return new Response(null, { status: 403 });
  const { id } = await params;
  const { approved } = (await request.json()) as { approved: boolean };
  const { rondo } = await getServices();
  try {
    await (approved ? rondo.approve(id, { by }) : rondo.deny(id, { by }));
    return new Response(null, { status: 204 });
  } catch (error) {
    return problemOf(error);
  }
}
