/**
 * Names of parameters that providers take. Anthropic's API, also behind Bedrock, refuses a whole request over one other
 * name (400, "Property keys should match pattern").
 */
export const PARAMETER_NAME = /^[A-Za-z0-9_.-]{1,64}$/;
