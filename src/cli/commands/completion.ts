/**
 * `completion`: the scripts for the shells. What they propose is asked of `pi-mcp-threads __complete "<line up to the cursor>"`
 * (candidates.ts), which answers a candidate on each line, and behind a tab what it is.
 */
import { EXIT, usage } from "../console/failure.ts";
import { didYouMean } from "../words/parse.ts";
import { SHELLS } from "../words/table.ts";
import type { Command } from "./known.ts";

const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], string>> = {
  // Readline replaces only what follows the last mark that divides words for it, such as the = of name=value. It shows
  // descriptions only where it lists (type 63, the second tab), because elsewhere it would insert them.
  bash: `_pi_mcp_threads() {
  local line="\${COMP_LINE:0:COMP_POINT}" marks="\${COMP_WORDBREAKS//[^=:@]/}" kept="" value about entry at width=0
  local cur="\${line##*[[:space:]]}"
  local -a abouts
  abouts=()
  COMPREPLY=()
  [[ -n $marks ]] && kept="\${cur%"\${cur##*[$marks]}"}"
  while IFS=$'\t' read -r value about; do
    [[ $value == "$cur"* ]] || continue
    value="\${value#"$kept"}"
    COMPREPLY+=("$value")
    abouts+=("$about")
    (( \${#value} > width )) && width=\${#value}
  done < <("\${COMP_WORDS[0]}" __complete "$line" 2>/dev/null)
  if [[ $COMP_TYPE == 63 && \${#COMPREPLY[@]} -gt 1 ]]; then
    for at in "\${!COMPREPLY[@]}"; do
      [[ -n \${abouts[at]} ]] || continue
      printf -v entry '%-*s  %s' "$width" "\${COMPREPLY[at]}" "\${abouts[at]}"
      printf -v entry '%-*s' "$((\${COLUMNS:-80} - 4))" "\${entry:0:\${COLUMNS:-80} - 4}"
      COMPREPLY[at]="$entry"
    done
  fi
  [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *= ]] && compopt -o nospace
  return 0
}
complete -o default -F _pi_mcp_threads pi-mcp-threads`,
  zsh: `_pi_mcp_threads() {
  local line value about
  local -a words_ open_
  for line in "\${(@f)$("\${words[1]}" __complete "\${(j: :)words[1,CURRENT-1]} $QIPREFIX$PREFIX" 2>/dev/null)}"; do
    [[ -n $line ]] || continue
    value="\${line%%$'\t'*}"
    about="\${\${line#$value}#$'\t'}"
    value="\${value//:/\\:}\${about:+:$about}"
    if [[ "\${line%%$'\t'*}" == *= ]]; then open_+=("$value"); else words_+=("$value"); fi
  done
  (( \${#open_} )) && _describe -V argument open_ -S ''
  (( \${#words_} )) && _describe -V word words_
  (( \${#open_} + \${#words_} )) || _files
}
compdef _pi_mcp_threads pi-mcp-threads`,
  fish: `function __pi_mcp_threads_complete
    set --local found (pi-mcp-threads __complete (commandline --current-process --cut-at-cursor) 2>/dev/null)
    if set --query found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline --current-token --cut-at-cursor)
    end
end
complete --command pi-mcp-threads --no-files --keep-order --arguments '(__pi_mcp_threads_complete)'`,
};

export const completion: Command = async ({ console, arguments: [shell = ""] }) => {
  const known = SHELLS.find((name) => name === shell);
  if (known === undefined) {
    const near = shell.length > 2 ? didYouMean(shell, SHELLS, 1) : "";
    throw usage(
      `There is no completion for ${JSON.stringify(shell)}.${near}`,
      `Known: ${SHELLS.join(", ")}.`,
    );
  }
  const script = SCRIPTS[known];
  if (console.json) console.document({ shell, script });
  else console.lines([script]);
  return EXIT.ok;
};
