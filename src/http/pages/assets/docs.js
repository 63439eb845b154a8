const viewer = document.getElementById("viewer");

// Undefined if its file was refused (refused.js).
window.SwaggerUIBundle?.({
  url: "openapi.json",
  domNode: viewer,
  tryItOutEnabled: true,
  deepLinking: true,
  displayRequestDuration: true,
  // Each response shows its schema.
  defaultModelsExpandDepth: -1,
  defaultModelExpandDepth: 3,
  // Its colours are inline styles, with too little contrast for one of the two modes.
  syntaxHighlight: false,
  // The default would send the document to an external validator.
  validatorUrl: null,
  plugins: [
    ownServer,
    collapsibleHeaders,
    callBelowSummary,
    collapsibleDescription,
    collapsibleInfo,
    execution,
  ],
});

/** Shows how to call an operation, also while it is closed. */
function callBelowSummary({ React, getSystem }) {
  const withCall = (Summary) => (props) => {
    const { path, method } = props.operationProps.toObject();
    const operation = getSystem().specSelectors.specJson().getIn(["paths", path, method]);
    return React.createElement(
      React.Fragment,
      null,
      React.createElement(Summary, props),
      React.createElement("pre", { className: "curl-example" }, toCurl(path, operation.toJS())),
    );
  };
  return { wrapComponents: { OperationSummary: withCall } };
}

/**
 * Shows an operation's description on demand. The style sheet hides the one above the form, which
 * would move it out of sight.
 */
function collapsibleDescription({ React, getComponent }) {
  const withDescription = (Parameters) => (props) =>
    React.createElement(
      React.Fragment,
      null,
      onDemand({ React, getComponent }, "How it works", props.operation.get("description")),
      React.createElement(Parameters, props),
    );
  return { wrapComponents: { parameters: withDescription } };
}

/**
 * Of the description of the API, shows only the first paragraph before the operations, and all of
 * it on demand.
 */
function collapsibleInfo({ React, getComponent, getSystem }) {
  const withMore = (Info) => (props) =>
    React.createElement(
      React.Fragment,
      null,
      React.createElement(Info, props),
      onDemand(
        { React, getComponent },
        "Time, limits, amounts and errors",
        getSystem().specSelectors.info().get("description").split("\n\n").slice(1).join("\n\n"),
      ),
    );
  return { wrapComponents: { InfoContainer: withMore } };
}

/** Sends requests to the page's own origin, whatever the document says. */
function ownServer() {
  const withOwnServer = (original) => (document) =>
    original({ ...document, servers: [{ url: baseUrl() }] });
  return { statePlugins: { spec: { wrapActions: { updateJsonSpec: withOwnServer } } } };
}

function baseUrl() {
  return new URL(".", location.href).href.slice(0, -1);
}

function onDemand({ React, getComponent }, summary, source) {
  const Markdown = getComponent("Markdown", true);
  return React.createElement(
    "details",
    { className: "on-demand" },
    React.createElement("summary", null, summary),
    React.createElement(Markdown, { source }),
  );
}

/**
 * Keeps the focus on Execute, which Swagger UI disables for the time of a request, or moves it
 * there from Clear, which removes itself. Brings the response in sight.
 */
function execution({ React }) {
  const withFocus = (Execute) => (props) =>
    React.createElement(Execute, { ...props, disabled: false });
  const onClick = ({ currentTarget }) =>
    currentTarget.parentElement.querySelector(".execute").focus();
  const withNextFocus = (Clear) => (props) =>
    React.createElement("span", { onClick }, React.createElement(Clear, props));
  const setResponse = (original) => (path, method, response) => {
    requestAnimationFrame(() => {
      const shown = viewer.querySelector(`.opblock-${method} .live-responses-table pre`);
      shown?.scrollIntoView({ block: "nearest" });
    });
    return original(path, method, response);
  };
  // Called when a request has invalid parameters and is not sent: an earlier response would look
  // like its own.
  const clearValidateParams =
    (original, { specActions }) =>
    (pathMethod) => {
      specActions.clearResponse(...pathMethod);
      specActions.clearRequest(...pathMethod);
      return original(pathMethod);
    };
  return {
    wrapComponents: { execute: withFocus, clear: withNextFocus },
    statePlugins: { spec: { wrapActions: { setResponse, clearValidateParams } } },
  };
}

function toCurl(path, { parameters = [], requestBody }) {
  const url = `${baseUrl()}${path}`;
  if (requestBody)
    return `curl '${url}' -d '${JSON.stringify(requestBody.content["application/json"].example)}'`;
  const query = parameters.flatMap(({ name, example }) =>
    [example].flat().map((value) => [name, value]),
  );
  return `curl '${url}?${new URLSearchParams(query)}'`;
}

/** Shows a response's headers, which nearly all responses share, only on demand. */
function collapsibleHeaders({ React }) {
  const collapsible = (Headers) => (props) =>
    React.createElement(
      "details",
      { className: "on-demand" },
      React.createElement("summary", null, "Headers"),
      React.createElement(Headers, props),
    );
  return { wrapComponents: { headers: collapsible } };
}

const NAMES = {
  ".information-container section": "About",
  ".examples-select-element": "Example",
  ".content-type": "Media type",
  ".body-param__text": "Request body",
};

/** Adds what screen readers need and Swagger UI leaves out. */
function completeForScreenReaders() {
  for (const [selector, name] of Object.entries(NAMES))
    for (const element of viewer.querySelectorAll(selector))
      element.setAttribute("aria-label", name);
  // A link inside a button, to the address that a click on the button shows.
  for (const link of viewer.querySelectorAll("button a[href]")) link.removeAttribute("href");
}
new MutationObserver(completeForScreenReaders).observe(viewer, { childList: true, subtree: true });
