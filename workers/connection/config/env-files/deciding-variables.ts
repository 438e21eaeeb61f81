/**
 * What a variable may do by its name. The table has those that decide what a program loads, runs or trusts: a person who
 * sets one can run code as the user, so a question shows the value. No table can have all of them, so a file of a clone
 * gives the user's own server, unasked, only names that are known for data. Pure.
 */

import { holdsVariable, outcomesOf } from "../entry/interpolate.ts";

/** Names of variables; `*` stands for any characters. */
const DECIDING = [
  // Where programs are found, and what a shell runs before the command that it was given.
  "PATH PATHEXT COMSPEC SHELL ENV BASH_ENV BASH_FUNC_* BASHOPTS SHELLOPTS PROMPT_COMMAND PS0 PS1 PS2 PS4 IFS",
  "ZDOTDIR FPATH CDPATH KSH_ENV INPUTRC SYSTEMROOT WINDIR PSMODULEPATH",
  // Where programs look for their own configuration, which names commands.
  "HOME HOMEDRIVE HOMEPATH USERPROFILE APPDATA LOCALAPPDATA PROGRAMDATA XDG_CONFIG_* XDG_DATA_* XDG_CACHE_HOME",
  // Libraries and modules that any program of the system loads.
  "LD_* DYLD_* _RLD_* LIBPATH SHLIB_PATH GCONV_PATH LOCPATH GLIBC_TUNABLES HOSTALIASES RES_OPTIONS",
  "GIO_EXTRA_MODULES GIO_MODULE_DIR GIO_USE_* GTK_MODULES GTK_PATH GTK3_MODULES QT_PLUGIN_PATH",
  "QT_QPA_PLATFORM_PLUGIN_PATH GST_PLUGIN_* LIBGL_DRIVERS_PATH",
  "LIBVA_DRIVERS_PATH VK_ICD_FILENAMES VK_DRIVER_FILES VK_ADD_* VK_LAYER_* VK_LOADER_* OCL_ICD_*",
  "DBUS_SESSION_BUS_ADDRESS DBUS_SYSTEM_BUS_ADDRESS TERMINFO TERMINFO_DIRS TERMCAP",
  // JavaScript.
  "NODE_* BUN_* DENO_* ELECTRON_* TS_NODE_* TSX_* ESBUILD_BINARY_PATH NVM_* FNM_* VOLTA_* COREPACK_*",
  "NPM_CONFIG_* NPM_EXECPATH NPM_NODE_EXECPATH NPM_LIFECYCLE_* PNPM_* YARN_* PREFIX",
  // Python.
  "PYTHON* __PYVENV_LAUNCHER__ VIRTUAL_ENV CONDA_* PIP_* PIPX_* PIPENV_* UV_* POETRY_* PDM_* HATCH_* PYENV_*",
  // Ruby, Perl, Lua, PHP, Tcl, R, Julia, Guile, OCaml, Haskell, Erlang and Elixir.
  "RUBY* GEM_* BUNDLE_* BUNDLER_* RBENV_* RAKE* PERL* LUA_* PHPRC PHP_INI_SCAN_DIR COMPOSER_* TCLLIBPATH",
  "R_HOME R_PROFILE* R_ENVIRON* R_LIBS* JULIA_* GUILE_* OCAMLPATH CAML_LD_LIBRARY_PATH GHC* ERL_* ELIXIR_* MIX_*",
  // Java and .NET.
  "CLASSPATH JAVA_* _JAVA_OPTIONS JDK_* JRE_HOME MAVEN_* MVN* M2_HOME GRADLE_* SBT_OPTS JBANG_* GROOVY_*",
  "DOTNET_* CORECLR_* COR_ENABLE_* COR_PROFILER* COMPLUS_* NUGET_* MSBUILD* ASPNETCORE_HOSTINGSTARTUP*",
  // Go, Rust, C and what builds native modules.
  "GOPROXY GOSUMDB GONOSUMDB GONOSUMCHECK GONOPROXY GOPRIVATE GOINSECURE GOFLAGS GOENV GOROOT GOPATH GOBIN",
  "GOTOOLCHAIN GOTOOLDIR GOMODCACHE GOCACHE GOCACHEPROG GODEBUG GOWORK GOVCS GOAUTH CGO_* CARGO_* RUSTC* RUSTDOC*",
  "RUSTFLAGS RUSTUP_* CC CXX CPP LD AR AS RANLIB MAKE MAKEFLAGS GNUMAKEFLAGS CFLAGS CPPFLAGS CXXFLAGS LDFLAGS",
  "PKG_CONFIG* CMAKE_* ASDF_* MISE_* RTX_* NIX_*",
  // Git and other version control; `GIT_AUTHOR_*` and tokens are not among them.
  "GIT_DIR GIT_COMMON_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES",
  "GIT_CEILING_DIRECTORIES GIT_DISCOVERY_ACROSS_FILESYSTEM GIT_SSH* GIT_ASKPASS GIT_EDITOR GIT_SEQUENCE_EDITOR",
  "GIT_PAGER GIT_EXEC_PATH GIT_CONFIG* GIT_EXTERNAL_DIFF GIT_PROXY_* GIT_TEMPLATE_DIR GIT_ALLOW_PROTOCOL",
  "GIT_PROTOCOL_FROM_USER GIT_SSL_* GIT_HTTP_* GIT_TRACE* GIT_ATTR_* GIT_REDIRECT_* GIT_TERMINAL_PROMPT",
  "HG HGRCPATH HGMERGE HGEDITOR SVN_SSH SVN_EDITOR CVS_RSH RSYNC_RSH RSYNC_CONNECT_PROG",
  // Programs that others start, and options that name programs.
  "SSH_ASKPASS* SSH_AUTH_SOCK SUDO_ASKPASS SUDO_EDITOR GNUPGHOME EDITOR ALTERNATE_EDITOR VISUAL PAGER MANPAGER BROWSER",
  "LESSOPEN LESSCLOSE TAR_OPTIONS RIPGREP_CONFIG_PATH FZF_DEFAULT_* BAT_CONFIG_PATH CURL_HOME WGETRC NETRC AWKPATH",
  "AWKLIBPATH VIMINIT GVIMINIT EXINIT MYVIMRC EMACSLOADPATH *_EXECUTABLE_PATH PUPPETEER_* PLAYWRIGHT_* CHROME_PATH",
  "CHROME_BIN FIREFOX_BIN",
  // Clouds, clusters and containers: their configuration names commands that give credentials.
  "KUBECONFIG HELM_* AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE AWS_CA_BUNDLE AWS_ENDPOINT_URL* AWS_CONTAINER_*",
  "AWS_EC2_METADATA_* AWS_WEB_IDENTITY_TOKEN_FILE BOTO_CONFIG CLOUDSDK_* GOOGLE_APPLICATION_CREDENTIALS",
  "GOOGLE_EXTERNAL_ACCOUNT_* AZURE_CONFIG_DIR AZURE_EXTENSION_DIR DOCKER_* CONTAINER_HOST CONTAINERS_CONF* PODMAN_*",
  "BUILDKIT_HOST COMPOSE_FILE COMPOSE_ENV_FILES TF_CLI_* TF_PLUGIN_* TF_DATA_DIR TERRAFORM_CONFIG ANSIBLE_*",
  // Drivers that a database's client loads.
  "ODBCINI ODBCSYSINI ODBCINSTINI TNS_ADMIN ORACLE_HOME MYSQL_HOME PGSYSCONFDIR PGSERVICEFILE LDAPCONF LDAPRC",
  // Which machines are trusted, and through which machines everything is sent.
  "SSL_CERT_* SSLKEYLOGFILE OPENSSL_* GNUTLS_* REQUESTS_CA_BUNDLE CURL_CA_BUNDLE CURL_SSL_BACKEND KRB5_* *_PROXY",
  "ANTHROPIC_BASE_URL OPENAI_BASE_URL OPENAI_API_BASE VAULT_ADDR GH_HOST",
];

/** Shapes of names under which programs look for programs, modules, files and options, whatever the program is. */
const SHAPES = [
  "MAKEFILES *RC *_PAGER *_EDITOR *_OPTS *_OPTIONS *_FLAGS *_ARGS *_HOME *_PATH *_DIR *_DIRS *_ROOT *_LIBRARY",
  "*_LIBRARIES *_PLUGIN* *_MODULE* *_CONFIG *_CONFIG_FILE *_CONF *_BINARY *_BIN *_EXE *_COMMAND *_CMD *_SHELL *_SCRIPT",
  "*_PRELOAD *_LOADER *_WRAPPER *_LAUNCHER *_HELPER *_INIT_FILE *_STARTUP",
];

/** What signs in, and what decides nothing about an address: no program runs, loads or connects to such a value. */
const SECRET =
  /^(?:.+_)?(?:TOKEN|KEY|APIKEY|KEY_ID|SECRET|PASSWORD|PASSWD|PASS|PASSPHRASE|PAT|LOG_LEVEL)$|^(?:PGPASSWORD|MYSQL_PWD)$/is;
const MODEL_NAME = /^(?:.+_)?MODEL$/is;
/** A file that a program would load. A name such as `vendor/model:8b` is none. */
const LIKE_FILE = /^(?:[./\\~]|[a-z]:[/\\])|\.[a-z]\w{0,11}$/i;

/** Who signs in. */
const WHO = /^(?:.+_)?(?:USER|USERNAME|EMAIL)$|^PGUSER$/is;
/** A place within a service. */
const PLACE =
  /^(?:.+_)?(?:ID|ACCOUNT|ORG|ORGANIZATION|TEAM|TENANT|CLOUD_PROJECT|REGION|DATABASE|DB|NAME|PORT)$|^(?:PGDATABASE|PGPORT)$/is;

/**
 * Who and where become parts of an address in many programs, as in `https://${SITE_NAME}.example.com`: a value that ends the part
 * (URL Standard, section 4.4) sends what follows, the user's token, to another machine.
 */
const ENDS_PART = /[/\\?#:&;%]/;

/** The name of a machine, if the value is one as a whole. */
const MACHINE_NAME = /(?:^|_)(?:HOST|SERVER|DOMAIN|ENDPOINT|SITE)_?NAME$/is;

const isPlaceWithin = (name: string, value: string): boolean => {
  if (ENDS_PART.test(value) || (MACHINE_NAME.test(name) && HOST.test(value))) return false;
  return WHO.test(name) || (PLACE.test(name) && !value.includes("@"));
};

/**
 * The address of a database: it brings its own user and password, so that no secret of the user follows it. Another
 * address could get the token that the user's own entry sends.
 */
const DATABASE_NAME = /^(?:.+_)?UR[LI]$/is;
const DATABASE = /^(?:postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?):\/\//i;

/** Names that fit a row above, are usual in files of projects, and decide nothing. */
const HARMLESS =
  /^(?:NODE_ENV|NODE_AUTH_TOKEN|MIX_ENV|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|PYTHONIOENCODING|PYTHONUTF8|PYTHONHASHSEED|DOTNET_ENVIRONMENT)$/i;

const patternOf = (rows: readonly string[]): RegExp =>
  new RegExp(
    `^(?:${rows
      .flatMap((row) => row.split(" "))
      .map((name) => name.replaceAll("*", ".*"))
      .join("|")})$`,
    "is",
  );

const PATTERN = patternOf(DECIDING);
const SHAPE = patternOf(SHAPES);

const plainOf = (name: string): string => name.normalize("NFKC").trim();

/** Whether programs that are in the table read the variable, whoever has set it for what. */
export function isOfPrograms(name: string): boolean {
  const plain = plainOf(name);
  return PATTERN.test(plain) && !HARMLESS.test(plain);
}

/**
 * Whether a variable decides what runs. The case never matters: on Windows it has no meaning, and npm, curl and others
 * read both cases. A name that only looks like one of the table (full-width letters) counts too.
 */
export function decidesWhatRuns(name: string): boolean {
  const plain = plainOf(name);
  if (HARMLESS.test(plain)) return false;
  return (
    PATTERN.test(plain) || (SHAPE.test(plain) && ![SECRET, WHO, PLACE].some((names) => names.test(plain)))
  );
}

/** Whether a variable is data by its name and can be no part of another address, or is the address of a database. */
export function isData(name: string, value: string): boolean {
  const plain = plainOf(name);
  if (HARMLESS.test(plain)) return true;
  if (PATTERN.test(plain)) return false;
  if (MODEL_NAME.test(plain)) return !LIKE_FILE.test(value.trim());
  if (SECRET.test(plain) || isPlaceWithin(plain, plainHost(value))) return true;
  return DATABASE_NAME.test(plain) && DATABASE.test(value.trim());
}

/** Names of variables that hold addresses, whatever the program is. */
const ADDRESS_NAME =
  /(_proxy|url|urls|index|links|registry|registries|goproxy|gosumdb|mirror|endpoint|host|addr)$/i;
/** Also as programs read it that follow the URL Standard, to which the slashes behind these names mean nothing. */
const URL_WITHIN = /\b(?:[a-z][a-z\d+.-]{0,20}:\/\/|(?:https?|wss?|ftp):[^\s:])/i;
/** A name with a dot, or the number of a machine, behind `//` or a scheme, and before a port, a path or another part. */
const HOST =
  /^(?:\/\/|[a-z][a-z\d+.-]{0,20}:\/*)?(?:(?:[\p{L}\p{N}_-]{1,63}\.)+(?:\p{L}{2,24}|xn--[a-z\d-]{1,59})\.?|\d{1,3}(?:\.\d{1,3}){3}|(?:[\da-f]{0,4}:){2,7}[\da-f.]{0,15})(?:[:/?#]\S*)?$/iu;
/** What stands between the parts of a list, of a connection string, or of a user and a host. */
const BETWEEN = /[^\p{L}\p{M}\p{N}_.:/?#%-]+/u;

/** The text as programs read a host: full-width letters and dots are plain, and signs that nobody sees are not there. */
const plainHost = (text: string): string =>
  text
    .normalize("NFKC")
    .replaceAll("\u3002", ".")
    .replace(/\p{Default_Ignorable_Code_Point}/gu, "");

/** The value as it is written and what it can become. Readers of URLs drop tabs and ends of lines. */
const readings = (value: string): string[] =>
  [value, ...(holdsVariable(value) ? outcomesOf(value) : [])].flatMap((text) =>
    /[\t\r\n]/.test(text) ? [text, text.replace(/[\t\r\n]/g, "")] : [text],
  );

/**
 * Whether the value of a variable is an address: a program may send there what it gets. A value that decides what runs may be a
 * program with a URL in it, so that its name alone says it.
 */
export function holdsAddress(name: string, value: string): boolean {
  const isNamed = ADDRESS_NAME.test(plainOf(name));
  const texts = readings(value).map(plainHost);
  const isUrl = texts.some((text) => URL_WITHIN.test(text));
  // The tables of names come last: a file may set many thousands.
  if (!isNamed && !isUrl && !texts.some((text) => text.split(BETWEEN).some((part) => HOST.test(part))))
    return false;
  const isKnown = isData(name, value);
  if (isNamed && !isKnown) return true;
  return (isUrl || !isKnown) && !decidesWhatRuns(name);
}
