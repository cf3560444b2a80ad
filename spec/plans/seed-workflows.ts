// The workflows of the document that the workflow files come from, as they are written there.

/** Workflows by a name for messages. */
export const seedWorkflows = {
  decision: `[workflow.llm]
strategy = "simple"
thinking = true          # Enable chain-of-thought
max_actions = 5          # Allow planning multiple steps
parallel = true          # Run independent actions concurrently
`,
  recipe: `[[steps]]
name = "analyze"
action = "view ."

[[steps]]
name = "fix"
action = "edit main.py 'add logging'"
`,
  sequence: `[workflow]
name = "validate-fix"
context = "flat"
cache = "ephemeral"

# Linear sequence
[[workflow.steps]]
action = "analyze --health"

[[workflow.steps]]
action = "edit {file} 'fix issues'"

[[workflow.steps]]
action = "analyze --health"  # verify
`,
  machine: `[[states]]
name = "analyzing"
action = "analyze --health"

[[states.transitions]]
condition = "has_errors"
next = "fixing"

[[states.transitions]]
condition = "success"
next = "done"

[[states]]
name = "fixing"
action = "edit {file} 'fix issues'"

[[states.transitions]]
next = "analyzing"  # always loop back
`,
  nested: `[[workflow.steps]]
action = "analyze"

[[workflow.steps]]
type = "scope"
context = "task_list"  # different strategy

[[workflow.steps.scope.steps]]  # deeply nested, ugly
action = "fix issue 1"
`,
  plugins: `[[states]]
name = "deciding"
plugin = "llm-decide"  # Plugin makes LLM call, returns next state
prompt = "Given {context}, what should we do next?"

[[states]]
name = "fixing"
plugin = "for-each"
source = "find-issues"  # Plugin that returns list
action = "edit {item}"
`,
  dwim: `# Agentic workflow - LLM decides steps dynamically
[workflow]
name = "dwim"

[workflow.context]
strategy = "task_tree"

[workflow.cache]
strategy = "in_memory"
preview_length = 500

[workflow.retry]
strategy = "exponential"
max_attempts = 3

[workflow.llm]
strategy = "simple"
provider = "anthropic"
model = "claude-3-haiku"
system_prompt = "..." # or reference a file
`,
  predefined: `# Non-agentic workflow - predefined steps
[workflow]
name = "validate-fix"

[workflow.context]
strategy = "flat"

[[workflow.steps]]
action = "analyze --health"

[[workflow.steps]]
action = "edit {file} 'fix issues'"

[[workflow.steps]]
action = "analyze --health"
`,
} as const;

/** The workflow with code of another language, which is refused. */
export const pythonWorkflow = `[[workflow.steps]]
action = "analyze"
condition = "python:len(context.errors) > 0"  # Embedded expression

[[workflow.steps]]
for_each = "python:find_issues()"  # Iterator expression
action = "fix {item}"
`;
