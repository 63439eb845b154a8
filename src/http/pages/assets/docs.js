/* global SwaggerUIBundle */
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#viewer",
  tryItOutEnabled: true,
  deepLinking: true,
  displayRequestDuration: true,
  // The default would send the document to an external validator.
  validatorUrl: null,
});

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const setMode = () => document.documentElement.classList.toggle("dark-mode", prefersDark.matches);
prefersDark.addEventListener("change", setMode);
setMode();
