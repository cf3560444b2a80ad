import { getServices } from '@/rondo';

export async function GET(request: Request): Promise<Response> {
  const { chat } = await getServices();
  return chat(request);
}
