/**
 * Owns: the proxies that the environment of a run names. No test sees them, since its servers are on loopback, which a proxy does
 * not reach; what fetches from a real registry gets them back.
 */
const PROXIES = /^(?:(?:https?|all|no)_proxy|npm_config_(?:https?[-_])?(?:no)?proxy)$/i;
const hidden: Record<string, string | undefined> = {};

/** Takes them out of this process's environment. */
export function hideProxies(): void {
  for (const name of Object.keys(process.env)) {
    if (!PROXIES.test(name)) continue;
    hidden[name] = process.env[name];
    delete process.env[name];
  }
}

/** The environment with them. */
export const withProxies = (env: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv => ({
  ...env,
  ...hidden,
});
