# The Node that the tests run (package.json).
FROM node:24.21.0-slim@sha256:d6aa754f16b3197301076f047b5def2f02ea1dbbc2ca920407d46d7ec7f87b20 AS base

FROM base AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No production dependency needs its install script. Only the sandbox needs the optional ones.
RUN npm ci --omit=dev --omit=optional --ignore-scripts
# Source maps, and types and sources in TypeScript: Node loads neither from packages.
RUN find node_modules -type f -regex ".*\.\(map\|[cm]?ts\)" -delete

FROM base AS sandbox-packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts

FROM base AS program
WORKDIR /app
COPY package.json ./
# The log and the metrics have it: docker build --build-arg COMMIT="$(git rev-parse HEAD)" .
ARG COMMIT=unknown
RUN npm pkg set gitHead="$COMMIT"
LABEL org.opencontainers.image.revision=$COMMIT
COPY src src
COPY docs/errors.md docs/errors.md
# The image's user `node`. A number, so that an orchestrator can verify that it is not root.
USER 1000:1000

# Only with `--target sandbox`: the chain and the social network of compose.sandbox.yaml.
FROM program AS sandbox
COPY --from=sandbox-packages /app/node_modules node_modules
EXPOSE 8898 8899
CMD ["node", "--disallow-code-generation-from-strings", "src/start.js", "sandbox"]

FROM program
# All addresses, of IPv6 and IPv4.
ENV NODE_ENV=production HOST=::
COPY --from=packages /app/node_modules node_modules
EXPOSE 4000
# Not /readyz: an orchestrator would replace containers that stop with transactions in flight. Bash connects itself,
# because the image has no curl, and a new Node process each time is expensive.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/${PORT:-4000} && printf 'GET %s/livez HTTP/1.0\\r\\n\\r\\n' \"$BASE_PATH\" >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
# The flags of `npm start`. docs/measurements.md says why.
CMD ["node", "--disallow-code-generation-from-strings", "--no-allocation-site-pretenuring", "--max-old-space-size=512", "src/start.js"]
