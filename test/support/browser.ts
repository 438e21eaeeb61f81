/** Owns: a browser without a screen: it follows redirects with cookies, as a user who agrees to everything. */

const MOST_REDIRECTS = 20;

export interface Page {
  /** The last address, which a user could paste. */
  url: string;
  /** 0: nothing listens at the last address. */
  status: number;
  text: string;
}

/** Cookies by origin and name. Paths and attributes are ignored, since each server of a test has its own origin. */
class Cookies {
  #jars = new Map<string, Map<string, string>>();

  take(url: URL, response: Response): void {
    const jar = this.#jars.get(url.origin) ?? new Map<string, string>();
    this.#jars.set(url.origin, jar);
    for (const line of response.headers.getSetCookie()) {
      const [pair = ""] = line.split(";");
      const at = pair.indexOf("=");
      const value = pair.slice(at + 1);
      if (value === "") jar.delete(pair.slice(0, at));
      else jar.set(pair.slice(0, at), value);
    }
  }

  header(url: URL): string {
    return [...(this.#jars.get(url.origin) ?? [])].map(([name, value]) => `${name}=${value}`).join("; ");
  }
}

const valueIn = (text: string, name: string): string => new RegExp(`${name}="([^"]*)"`).exec(text)?.[1] ?? "";

/** The form of a page, filled in; undefined if there is none that is posted. */
function filledForm(text: string, fields: Record<string, string>) {
  const form = /<form[^>]*method="post"[^>]*>[\s\S]*?<\/form>/.exec(text)?.[0];
  if (form === undefined) return undefined;
  const inputs = form.match(/<input[^>]*>/g) ?? [];
  const body = new URLSearchParams();
  for (const input of inputs) {
    const name = valueIn(input, "name");
    body.set(name, fields[name] ?? valueIn(input, "value"));
  }
  return { body, action: valueIn(form, "action") };
}

/**
 * Opens the address and follows all redirects. `stopsAt`: an address that is not opened, as behind a firewall. `fields`: what
 * the user writes into each form; without them none is sent.
 */
export async function browse(
  address: string,
  stopsAt?: (url: URL) => boolean,
  fields?: Record<string, string>,
): Promise<Page> {
  const cookies = new Cookies();
  let url = new URL(address);
  let body: URLSearchParams | undefined;
  for (let steps = 0; steps < MOST_REDIRECTS; steps += 1) {
    if (stopsAt?.(url)) return { url: url.href, status: 0, text: "" };
    const cookie = cookies.header(url);
    const sent = body === undefined ? {} : { method: "POST", body };
    const headers = cookie === "" ? {} : { cookie };
    const response = await fetch(url, { redirect: "manual", headers, ...sent });
    cookies.take(url, response);
    const location = response.headers.get("location");
    const text = await response.text();
    const form = location === null && fields ? filledForm(text, fields) : undefined;
    if (location === null && !form) return { url: url.href, status: response.status, text };
    body = form?.body;
    url = new URL(form?.action ?? location ?? "", url);
  }
  throw new Error(`more than ${MOST_REDIRECTS} redirects from ${address}`);
}
