/* global SwaggerUIBundle */
const viewer = document.getElementById("viewer");

const ui = SwaggerUIBundle({
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
  plugins: [collapsibleHeaders, curlExample],
  onComplete() {
    if (!location.hash) open("lookUpWallet");
  },
});

/** Opens an operation. Swagger UI's own action would also change the address. */
function open(operationId) {
  const thing = ["operations", "default", operationId];
  ui.getStore().dispatch({ type: "layout_show", payload: { thing, shown: true } });
}

/** Shows how to call an operation without a body before any is sent. */
function curlExample({ React }) {
  const withExample = (Parameters) => (props) =>
    React.createElement(
      React.Fragment,
      null,
      props.pathMethod[1] === "get" &&
        React.createElement("pre", { className: "curl-example" }, toCurl(props)),
      React.createElement(Parameters, props),
    );
  return { wrapComponents: { parameters: withExample } };
}

function toCurl({ pathMethod: [path], operation }) {
  const parameters = operation.get("parameters").filter((parameter) => parameter.get("required"));
  const query = parameters.map((parameter) => [parameter.get("name"), parameter.get("example")]).toJS();
  const base = new URL(".", location.href).href.slice(0, -1);
  return `curl '${base}${path}?${new URLSearchParams(query)}'`;
}

/** Shows a response's headers, which nearly all responses share, only on demand. */
function collapsibleHeaders({ React }) {
  const collapsible = (Headers) => (props) =>
    React.createElement(
      "details",
      { className: "headers-on-demand" },
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
    for (const element of viewer.querySelectorAll(selector)) element.setAttribute("aria-label", name);
  // A link inside a button, to the address that a click on the button shows.
  for (const link of viewer.querySelectorAll("button a[href]")) link.removeAttribute("href");
}
new MutationObserver(completeForScreenReaders).observe(viewer, { childList: true, subtree: true });
