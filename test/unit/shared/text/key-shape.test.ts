import { expect, test } from "vitest";
import { isKeyAsVariable, variableText } from "../../../../src/shared/text/key-shape.ts";

test.each([
  "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
  "ghp_abcdefghijklmnopqrstuvwxyzabcdefghij",
  "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
  "AKIAIOSFODNN7EXAMPLE",
  "AIzaSyD_abcdefghijklmnopqrstuvwxyz012345",
  "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh",
  "xoxb_123456789012_abcdefghijkl",
  "a3f5c9e07b1d4a6e8c2f9d0b5a7e3c1f",
  "D9F2E81A7C3B5D60F4E2A8B1C7D3E5F9",
  "acme_9f2e81a7c3b5d60f4e2a8b1c",
  "T0KEN9xQ2wE7rT5yU1iO3pA",
])("%s -> a key, which no text shows", (key) => {
  expect(isKeyAsVariable(key)).toBe(true);
  expect(variableText(key)).toBe("a variable with the name of a key");
});

test.each([
  "TOKEN",
  "GITHUB_PERSONAL_ACCESS_TOKEN",
  "CLOUDFLARE_R2_TOKEN",
  "CONFLUENCE2_ACCESS_TOKEN",
  "ANTHROPIC_API_KEY_2",
  "COMPANYWIDEGATEWAYTOKEN1",
  "npm_config_registry_token",
  "npm_package_config_acme_token",
  "my_github_token_v2",
  "githubEnterpriseToken2",
  "k8s_cluster_token",
  "TF_VAR_s3_access_key",
  "my_e2e_test_token",
  "b2_application_key",
  "n8n_mcp_auth_token",
  "i18n_service_token",
  "hf_token",
  "sk_live_key",
  "_AUTH_TOKEN_FOR_2026_06_30",
  "AWS_SECRET_ACCESS_KEY",
])("%s -> a name", (name) => {
  expect([isKeyAsVariable(name), variableText(name)]).toEqual([false, name]);
});
